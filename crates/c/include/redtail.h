/*
 * A bottleneck of redtail: a queue, a transmitter of constant rate, and a delay.
 *
 * The program keeps its packets and gives each a handle, any number it likes. A handle that was sent comes back exactly
 * once, from redtail_receive or from redtail_dropped; from then on the library does not name it again. Times are
 * nanoseconds since a moment that the program chooses; no clock is read. A time before that of an earlier call counts
 * as that.
 *
 * A bottleneck belongs to one thread at a time. Null where a pointer is wanted does nothing, and returns false or null.
 */
#ifndef REDTAIL_H
#define REDTAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redtail_bottleneck redtail_bottleneck;

/* The ECN bits of the IP header (RFC 3168, section 5). */
enum { REDTAIL_NOT_ECT = 0, REDTAIL_ECT1 = 1, REDTAIL_ECT0 = 2, REDTAIL_CE = 3 };

typedef struct redtail_packet {
    uint64_t handle; /* the program's own */
    uint32_t size;   /* bytes on the link, headers included */
    uint32_t flow;   /* by which queues by flow tell flows */
    uint8_t ecn;     /* the two bits; CE when the queue has marked the packet */
    uint8_t dscp;    /* the six bits of the class (RFC 2474) */
} redtail_packet;

/*
 * A bottleneck with the queue that `queue` describes as the experiment file does, such as
 * "{ kind = \"codel\", limit = \"1000 packets\" }". `rate` is in bit/s, `delay` in nanoseconds; `seed` decides what the
 * queue draws at random. Returns null when that cannot be run, and writes the reason to `error`, which has room for
 * `size` bytes, as a text that ends with 0; `error` may be null.
 */
redtail_bottleneck *redtail_new(const char *queue, uint64_t rate, uint64_t delay, uint64_t seed,
                                char *error, size_t size);

/* Ends the bottleneck. Handles of packets inside do not come back. */
void redtail_free(redtail_bottleneck *bottleneck);

/* A packet arrives at the queue. Returns false, and takes no packet, when `ecn` or `dscp` has other bits. */
bool redtail_send(redtail_bottleneck *bottleneck, const redtail_packet *packet, uint64_t now);

/*
 * The next packet that has arrived at the other end until `now`, written to `packet`; false if there is none now.
 * Call it until it returns false.
 */
bool redtail_receive(redtail_bottleneck *bottleneck, redtail_packet *packet, uint64_t now);

/*
 * The next packet that the queue has dropped in an earlier call, written to `packet`; false if there is none. Call it
 * until it returns false, after redtail_send and redtail_receive: the library remembers a drop until it has been asked.
 */
bool redtail_dropped(redtail_bottleneck *bottleneck, redtail_packet *packet);

/*
 * When redtail_receive is to be called next if nothing is sent before, written to `at`; false if nothing will happen.
 * Where a queue holds packets back, nothing may have arrived then.
 */
bool redtail_next_event(const redtail_bottleneck *bottleneck, uint64_t *at);

#ifdef __cplusplus
}
#endif

#endif
