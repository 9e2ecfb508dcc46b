/*
 * A queue that drops the packets that have waited for longer than `deadline` seconds, when their turn comes.
 *
 * Replace the law in `my_queue_dequeue`. The interface is described in redtail_plugin.h.
 */
#include "redtail_plugin.h"

#define MOST 65536 /* packets that can wait */

typedef struct {
    uint64_t id;
    redtail_time enqueued;
} waiting;

static redtail_context context;
static redtail_time deadline;
/* The packets in order of arrival: a ring. */
static waiting ring[MOST];
static uint32_t first, count;
static uint64_t late;

void REDTAIL_EXPORT(my_queue_new)(const redtail_context *given) {
    context = *given;
    deadline = (redtail_time)(redtail_number("deadline", 0.05) * (double)REDTAIL_SECOND);
    if (deadline == 0) redtail_fail("params.deadline is 0; accepted: seconds, more than 0");
}

int32_t REDTAIL_EXPORT(my_queue_enqueue)(const redtail_packet *packet, redtail_time now) {
    if (!redtail_admits(&context, packet) || count == MOST) return 0;
    ring[(first + count) % MOST] = (waiting){packet->id, now};
    count += 1;
    return 1;
}

uint64_t REDTAIL_EXPORT(my_queue_dequeue)(redtail_time now) {
    for (;;) {
        waiting head = ring[first];
        first = (first + 1) % MOST;
        count -= 1;
        /* The last one is sent in any case, so that the link does not idle. */
        if (now - head.enqueued <= deadline || count == 0) return head.id;
        redtail_drop(head.id, REDTAIL_EARLY);
        late += 1;
    }
}

void REDTAIL_EXPORT(my_queue_start_measuring)(redtail_time now) {
    (void)now;
    late = 0;
}

void REDTAIL_EXPORT(my_queue_report)(redtail_time now) {
    (void)now;
    redtail_report("late", (double)late);
}
