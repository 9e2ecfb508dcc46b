/*
 * The interface between redtail and a plug-in that is a WebAssembly module, for C and C++: version 1.
 *
 * A module defines functions that redtail calls (exports), and calls functions of redtail (imports). Numbers are passed
 * as they are, structures by their address in the module's memory, texts by the address of their bytes up to a zero. A
 * module has nothing else: no operating system, no files, no clock, no threads, no other memory. Each link of each run
 * has a memory of its own, so static variables hold the state of one queue; and so has each sender.
 *
 * A queue that is called NAME defines these functions. The first three are necessary.
 *
 *   void         REDTAIL_EXPORT(NAME_new)(const redtail_context *context)
 *   int32_t      REDTAIL_EXPORT(NAME_enqueue)(const redtail_packet *packet, redtail_time now)
 *                    1: the packet waits from now on; 0: it is dropped
 *   uint64_t     REDTAIL_EXPORT(NAME_dequeue)(redtail_time now)
 *                    the id of the packet to send next. REDTAIL_NONE while packets wait is for queues that hold packets
 *                    back, and needs a next_wakeup. It is not called while nothing waits
 *   void         REDTAIL_EXPORT(NAME_on_empty)(redtail_time now)
 *                    the link is idle and asks for a packet, and none waits
 *   redtail_time REDTAIL_EXPORT(NAME_next_wakeup)(redtail_time now)
 *                    when to be called again, or REDTAIL_NONE; asked for after each call of the others
 *   void         REDTAIL_EXPORT(NAME_on_wakeup)(redtail_time now)
 *                    this time has come
 *   double       REDTAIL_EXPORT(NAME_average)(void)
 *   double       REDTAIL_EXPORT(NAME_probability)(void)
 *                    the state of the control law, for time series; no number (NaN) for none
 *   void         REDTAIL_EXPORT(NAME_start_measuring)(redtail_time now)
 *                    the warm-up is over
 *   void         REDTAIL_EXPORT(NAME_report)(redtail_time now)
 *                    calls redtail_report for each figure of its own
 *
 * A congestion controller that is called NAME defines these functions. The first three are necessary. There is an
 * instance for each sender; what it decides is a `redtail_control`, which redtail reads after each call.
 *
 *   void             REDTAIL_EXPORT(NAME_new)(const redtail_connection *connection)
 *   redtail_control *REDTAIL_EXPORT(NAME_control)(void)
 *                        where it is; called once, after new
 *   void             REDTAIL_EXPORT(NAME_on_ack)(const redtail_sample *sample)
 *                        an acknowledgement, a duplicate or one in fast recovery too
 *   void             REDTAIL_EXPORT(NAME_on_lost)(const redtail_lost *lost, redtail_time now)
 *                        a segment was declared lost; before on_ack for the acknowledgement that showed it
 *   void             REDTAIL_EXPORT(NAME_on_recovery)(const redtail_event *event)
 *                        fast recovery begins, or marks count as a loss; before on_ack
 *   void             REDTAIL_EXPORT(NAME_on_timeout)(const redtail_event *event)
 *   void             REDTAIL_EXPORT(NAME_on_handshake)(redtail_time rtt, redtail_time now)
 *   void             REDTAIL_EXPORT(NAME_on_restart)(uint64_t delivered, redtail_time now)
 *                        sending resumes after the application had nothing to send
 *   void             REDTAIL_EXPORT(NAME_on_undo)(void)
 *                        the latest loss or timeout was none
 *   void             REDTAIL_EXPORT(NAME_set_cwnd)(double cwnd)
 *                        the sender sets the window; without the function, `cwnd` is set
 *   void             REDTAIL_EXPORT(NAME_report)(redtail_time now)
 *                        calls redtail_report for each figure of its own
 *
 * Times are picoseconds since the start of the run and never decrease. Bounds: a module has at most 4 MiB, its memory at
 * most 64 MiB, and a call that has not returned after 5 s ends the run.
 *
 * Compile with clang and lld:
 *
 *   clang --target=wasm32 -O2 -mbulk-memory -nostdlib -Wl,--no-entry -o my_queue.wasm my_queue.c
 */
#ifndef REDTAIL_PLUGIN_H
#define REDTAIL_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
#define REDTAIL_C extern "C"
#else
#define REDTAIL_C
#endif

/* The name of a function that redtail calls. In C++, `REDTAIL_C` stands before the function's type. */
#define REDTAIL_EXPORT(name) __attribute__((export_name(#name))) name
/* A function of redtail. */
#define REDTAIL_IMPORT(name) __attribute__((import_module("redtail"), import_name(#name)))

/* A time since the start of the run, or a length of time, in picoseconds. */
typedef uint64_t redtail_time;
#define REDTAIL_SECOND UINT64_C(1000000000000)
#define REDTAIL_MILLISECOND UINT64_C(1000000000)

/* No limit; no packet; no wakeup. */
#define REDTAIL_NONE UINT64_MAX

/* The place of a queue. */
typedef struct redtail_context {
    uint64_t rate;          /* of the link, in bit/s */
    uint64_t limit_packets; /* most packets that may wait, or REDTAIL_NONE: the file's `limit` */
    uint64_t limit_bytes;   /* most bytes that may wait, or REDTAIL_NONE */
} redtail_context;

enum redtail_ecn { REDTAIL_NOT_ECT = 0, REDTAIL_ECT1 = 1, REDTAIL_ECT0 = 2, REDTAIL_CE = 3 };
enum redtail_protocol { REDTAIL_TCP = 0, REDTAIL_UDP = 1 };
/* Why a packet is dropped: it does not fit; the control law chose it; the control law drops every packet. */
enum redtail_reason { REDTAIL_LIMIT = 0, REDTAIL_EARLY = 1, REDTAIL_FORCED = 2 };

/* A packet that arrives. The structure is valid during the call. */
typedef struct redtail_packet {
    uint64_t id;              /* names the packet from now on */
    uint64_t key;             /* tells connections apart, as addresses and ports do */
    uint64_t waiting_packets; /* what waits in the queue, without this packet */
    uint64_t waiting_bytes;
    uint32_t size;     /* on the link, in bytes */
    uint32_t flow;     /* number of the flow */
    uint32_t group;    /* number of the traffic group, in the order of the file */
    uint32_t sender;   /* number of the host that sends data */
    uint32_t receiver; /* number of the host that receives it */
    uint16_t port;     /* of the side that serves; 0 if it is not known */
    uint8_t protocol;  /* a redtail_protocol */
    uint8_t ecn;       /* a redtail_ecn */
    uint8_t dscp;      /* 0 to 63 */
} redtail_packet;

/* The connection of a controller. */
typedef struct redtail_connection {
    double initial_cwnd; /* bytes */
    uint32_t mss;        /* payload bytes of a full segment */
} redtail_connection;

/* What a controller decides. Windows are bytes, rates bytes/s. */
typedef struct redtail_control {
    double cwnd;         /* the window; less than a segment counts as one */
    double ssthresh;     /* for time series, and for pacing by the window; __builtin_inf() without one */
    double pacing_rate;  /* 0 for a window-based controller */
    double send_quantum; /* the most that leaves at once at the pacing rate; less than a segment counts as one */
    const char *state;   /* the name of the state, a constant text; 0 without states */
    int32_t probes_rtt;  /* 1 while the window is small to measure the round trip */
} redtail_control;

enum redtail_episode { REDTAIL_OPEN = 0, REDTAIL_RECOVERY = 1, REDTAIL_LOSS = 2 };

/* What an acknowledgement tells: the rate sample of draft-ietf-ccwg-bbr-06, section 4.1.2. Amounts are bytes. */
typedef struct redtail_sample {
    redtail_time now;
    uint64_t newly_acked;     /* that it newly acknowledged, cumulatively or selectively */
    uint64_t advanced;        /* that it newly acknowledged cumulatively; 0 for a duplicate */
    uint64_t newly_lost;      /* declared lost because of it */
    uint64_t newly_marked;    /* that it newly reports as marked */
    uint64_t total_delivered; /* since the start, in order or not */
    uint64_t total_marked;
    uint64_t prior_delivered; /* total_delivered when the newest delivered segment was sent; REDTAIL_NONE without one */
    uint64_t delivered, lost, marked; /* since then */
    double delivery_rate;     /* bytes/s; 0 if the interval is too short to give one */
    redtail_time rtt;         /* of the newest delivered segment that was sent once; REDTAIL_NONE without one */
    redtail_time srtt;        /* the smoothed one; REDTAIL_NONE before the first */
    uint64_t prior_in_flight; /* before it */
    uint64_t in_flight;       /* after it */
    uint64_t sent_in_flight;  /* just after the newest delivered segment was sent */
    redtail_time held_for;    /* pacing holds back the next segment for this time */
    uint32_t episode;         /* a redtail_episode, after it */
    uint32_t app_limited;     /* the sender had no data to send, so the path may be faster */
    uint32_t window_limited;  /* in the latest round trip the window limited sending */
} redtail_sample;

/* A segment that has just been declared lost. */
typedef struct redtail_lost {
    uint64_t start;           /* offset of its first byte */
    uint64_t sent_in_flight;  /* just after it was sent */
    uint64_t lost;            /* since it was sent, its own bytes included */
    uint64_t total_delivered; /* since the start */
    uint32_t size;            /* payload bytes */
    uint32_t app_limited;     /* the sender had no more data when it was sent */
} redtail_lost;

enum redtail_cause { REDTAIL_CAUSE_LOSS = 0, REDTAIL_CAUSE_MARKS = 1, REDTAIL_CAUSE_TIMEOUT = 2 };

/* A loss, marks that count as one, or a timeout. */
typedef struct redtail_event {
    redtail_time now;
    uint64_t flight_size; /* bytes outstanding: FlightSize of RFC 5681 */
    uint32_t cause;       /* a redtail_cause */
    uint32_t repeated;    /* a further timeout of data that a timeout has retransmitted already */
} redtail_event;

/* Drops a waiting packet, or the one that arrives; enqueue then returns 0. During enqueue and dequeue. */
REDTAIL_C REDTAIL_IMPORT(drop) void redtail_drop(uint64_t id, int32_t reason);
/* Sets CE on a packet if its sender uses ECN, which its `ecn` tells. During enqueue and dequeue. */
REDTAIL_C REDTAIL_IMPORT(mark) void redtail_mark(uint64_t id);
/* A random number from 0 up to 1, from the stream of this queue or sender in this replication. */
REDTAIL_C REDTAIL_IMPORT(uniform) double redtail_uniform(void);
/* The number that `params` has for a key, 1 for true and 0 for false, or `otherwise`. During new: a key that nobody asks
 * for there is refused. */
REDTAIL_C REDTAIL_IMPORT(number) double redtail_number(const char *key, double otherwise);
/* Copies the text that `params` has for a key, and a zero after it, into `text`, which has `size` bytes; cut if it is
 * longer. Returns its length, or -1 without the key. */
REDTAIL_C REDTAIL_IMPORT(text) int32_t redtail_text(const char *key, char *text, uint32_t size);
/* Tells a figure of its own: the metric `queue.NAME`, or `GROUP.controller.NAME`. During report. */
REDTAIL_C REDTAIL_IMPORT(report) void redtail_report(const char *name, double value);
/* Ends the run with a message. */
REDTAIL_C REDTAIL_IMPORT(fail) void redtail_fail(const char *message);

/* Whether a packet fits within the file's limit. */
static inline int redtail_admits(const redtail_context *context, const redtail_packet *packet) {
    return packet->waiting_packets < context->limit_packets &&
           (context->limit_bytes == REDTAIL_NONE ||
            packet->waiting_bytes + packet->size <= context->limit_bytes);
}

/* What redtail asks every module for: the version of the interface, and a buffer through which structures are passed. */
REDTAIL_C __attribute__((weak)) int32_t REDTAIL_EXPORT(redtail_abi)(void) { return 1; }
REDTAIL_C __attribute__((weak)) void *REDTAIL_EXPORT(redtail_buffer)(void) {
    static uint64_t buffer[32];
    return buffer;
}

#endif
