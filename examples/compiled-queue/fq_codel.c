/*
 * FQ-CoDel as a plug-in: flows are hashed into queues, which are served in turn with preference for sparse flows, with
 * CoDel's law in each queue.
 *
 * Sources: RFC 8290, section 4 (queues, turns, overload); RFC 8289, section 5 (CoDel). Where an RFC leaves a choice, it is
 * that of redtail's queue of kind `fq-codel`, so that both give the same results:
 *
 *   - the hash is SplitMix64's finalizer (Steele, Lea and Flood 2014), salted with a random number;
 *   - the law stops when no more than one packet waits in all queues, as in Linux's sch_fq_codel;
 *   - packets that are dropped when the limit is exceeded count as signals of their queue's law, as in Linux.
 *
 * Parameters: target and interval in seconds, quantum in bytes.
 */
#include "redtail_plugin.h"

#define QUEUES 1024u /* RFC 8290, section 5.2.5 */
#define BATCH 64u    /* packets dropped at a time when the limit is exceeded: RFC 8290, section 4.1 */
#define MTU 1500u    /* RFC 8289, section 5.3 */
#define POOL 65536u  /* packets that can wait */
#define NOBODY UINT32_MAX

/* A packet that waits. */
typedef struct {
    uint64_t id;
    redtail_time enqueued;
    uint32_t size;
    uint32_t next; /* in its queue, or among the free places */
    int ect;       /* it can be marked */
} place;

/* What CoDel remembers after a packet until the next one. */
enum after { PASSED, DROPPED_ON_ENTRY, DROPPED };

/* A queue with the state of its law; names as in RFC 8289. */
typedef struct {
    uint32_t head, tail;
    uint64_t bytes;
    int64_t deficit;
    redtail_time first_above_time; /* REDTAIL_NONE while the delay is below the target */
    redtail_time drop_next;
    uint32_t count, lastcount;
    uint8_t dropping, after;
} queue;

/* Lists of queues: two ends, of the new and of the old queues, behind the links of the queues. */
enum list { NEW, OLD };

static uint64_t limit_packets, limit_bytes, salt;
static redtail_time target, interval;
static int64_t quantum;

static place pool[POOL];
static uint32_t used, unused = NOBODY; /* places so far; the first free one among them */
static queue queues[QUEUES];
static struct { uint32_t before, after; } links[QUEUES + 2];
static uint64_t packets, bytes; /* in all queues */
static redtail_time sojourn;    /* of the packet that left last */
static uint64_t overload_drops;

void REDTAIL_EXPORT(fq_codel_new)(const redtail_context *context) {
    limit_packets = context->limit_packets;
    limit_bytes = context->limit_bytes;
    target = (redtail_time)(redtail_number("target", 0.005) * (double)REDTAIL_SECOND + 0.5);
    interval = (redtail_time)(redtail_number("interval", 0.1) * (double)REDTAIL_SECOND + 0.5);
    quantum = (int64_t)redtail_number("quantum", 1500);
    if (quantum < 256) redtail_fail("params.quantum is too low; accepted: at least 256 bytes");
    salt = (uint64_t)(redtail_uniform() * (double)(UINT64_C(1) << 53));
    for (uint32_t i = 0; i < QUEUES; i++) {
        queues[i].head = queues[i].tail = NOBODY;
        queues[i].first_above_time = REDTAIL_NONE;
        links[i].before = links[i].after = NOBODY;
    }
    for (uint32_t end = QUEUES; end < QUEUES + 2; end++) links[end].before = links[end].after = end;
}

/* ---- lists ---- */

static uint32_t first_of(enum list list) {
    uint32_t first = links[QUEUES + list].after;
    return first < QUEUES ? first : NOBODY;
}

static void leave(uint32_t i) {
    if (links[i].before == NOBODY) return;
    links[links[i].before].after = links[i].after;
    links[links[i].after].before = links[i].before;
    links[i].before = links[i].after = NOBODY;
}

static void append(enum list list, uint32_t i) {
    uint32_t end = QUEUES + list;
    leave(i);
    links[i].before = links[end].before;
    links[i].after = end;
    links[links[end].before].after = i;
    links[end].before = i;
}

/* ---- packets ---- */

static uint64_t high_half(uint64_t a, uint64_t b) {
    uint64_t low_a = (uint32_t)a, high_a = a >> 32, low_b = (uint32_t)b, high_b = b >> 32;
    uint64_t middle = high_a * low_b + (low_a * low_b >> 32);
    return high_a * high_b + (middle >> 32) + (((uint32_t)middle + low_a * high_b) >> 32);
}

static uint32_t bucket(uint64_t key) {
    uint64_t z = key + salt * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)high_half(z ^ (z >> 31), QUEUES);
}

static uint32_t new_place(void) {
    if (unused == NOBODY) return used++;
    uint32_t found = unused;
    unused = pool[found].next;
    return found;
}

/* Takes the oldest packet of a queue. Its place is free, and holds the packet until the next one arrives. */
static uint32_t take(queue *q) {
    uint32_t found = q->head;
    if (found == NOBODY) return NOBODY;
    q->head = pool[found].next;
    if (q->head == NOBODY) q->tail = NOBODY;
    q->bytes -= pool[found].size;
    bytes -= pool[found].size;
    packets -= 1;
    pool[found].next = unused;
    unused = found;
    return found;
}

/* Drops half of the bytes of the queue with the most bytes, at most BATCH packets. */
static void relieve(void) {
    uint32_t fattest = 0;
    for (uint32_t i = 1; i < QUEUES; i++)
        if (queues[i].bytes > queues[fattest].bytes) fattest = i;
    queue *q = &queues[fattest];
    uint64_t half = q->bytes / 2, gone = 0;
    uint32_t count = 0;
    while (count == 0 || (count < BATCH && gone < half)) {
        uint32_t found = take(q);
        if (found == NOBODY) break;
        count += 1;
        gone += pool[found].size;
        redtail_drop(pool[found].id, REDTAIL_LIMIT);
    }
    q->count += count;
    overload_drops += count;
}

int32_t REDTAIL_EXPORT(fq_codel_enqueue)(const redtail_packet *packet, redtail_time now) {
    if (limit_packets == 0 || packet->size > limit_bytes) {
        overload_drops += 1;
        redtail_drop(packet->id, REDTAIL_LIMIT);
        return 0;
    }
    uint32_t i = bucket(packet->key), at = new_place();
    queue *q = &queues[i];
    if (at >= POOL) redtail_fail("more than 65536 packets wait; accepted: a lower limit in the file");
    pool[at] = (place){packet->id, now, packet->size, NOBODY, packet->ecn != REDTAIL_NOT_ECT};
    if (links[i].before == NOBODY) {
        append(NEW, i);
        q->deficit = quantum;
    }
    if (q->tail == NOBODY) q->head = at;
    else pool[q->tail].next = at;
    q->tail = at;
    q->bytes += packet->size;
    bytes += packet->size;
    packets += 1;
    uint64_t before = overload_drops;
    while (packets > limit_packets || bytes > limit_bytes) relieve();
    /* The arriving packet itself may have been dropped: then its queue has become empty. */
    return before == overload_drops || q->tail == at;
}

/* ---- CoDel ---- */

/* interval / sqrt(count), to the nearest picosecond. */
static redtail_time gap(const queue *q) {
    double second = (double)REDTAIL_SECOND, count = q->count > 0 ? q->count : 1;
    double exact = (double)interval / second / __builtin_sqrt(count) * second;
    redtail_time below = (redtail_time)exact;
    return below + (exact - (double)below >= 0.5);
}

static int ok_to_drop(queue *q, const place *head, redtail_time now) {
    if (now - head->enqueued < target || bytes <= MTU) {
        q->first_above_time = REDTAIL_NONE;
        return 0;
    }
    if (q->first_above_time == REDTAIL_NONE) {
        q->first_above_time = now + interval;
        return 0;
    }
    return now >= q->first_above_time;
}

enum decision { PASS, MARK, DROP };

static enum decision enter(queue *q, const place *head, redtail_time now) {
    uint32_t delta = q->count - q->lastcount;
    redtail_time since = now > q->drop_next ? now - q->drop_next : 0;
    q->dropping = 1;
    q->count = delta > 1 && delta <= q->count && since < 16 * interval ? delta : 1;
    q->lastcount = q->count;
    q->drop_next = now + gap(q);
    if (head->ect) return MARK;
    q->after = DROPPED_ON_ENTRY;
    return DROP;
}

static enum decision judge(queue *q, const place *head, redtail_time now) {
    int ok = ok_to_drop(q, head, now);
    uint8_t after = q->after;
    q->after = PASSED;
    if (after == DROPPED_ON_ENTRY) return PASS;
    if (after == DROPPED && ok) q->drop_next += gap(q);
    if (!ok) {
        q->dropping = 0;
        return PASS;
    }
    if (!q->dropping) return enter(q, head, now);
    if (now < q->drop_next) return PASS;
    q->count += 1;
    if (head->ect) {
        q->drop_next += gap(q);
        return MARK;
    }
    q->after = DROPPED;
    return DROP;
}

/* The next packet of a queue that its law lets pass. */
static uint32_t next_of(queue *q, redtail_time now) {
    for (;;) {
        uint32_t found = take(q);
        if (found == NOBODY) {
            q->first_above_time = REDTAIL_NONE;
            if (q->after == PASSED) q->dropping = 0;
            q->after = PASSED;
            return NOBODY;
        }
        switch (judge(q, &pool[found], now)) {
        case DROP:
            redtail_drop(pool[found].id, REDTAIL_EARLY);
            continue;
        case MARK:
            redtail_mark(pool[found].id);
            return found;
        case PASS:
            return found;
        }
    }
}

uint64_t REDTAIL_EXPORT(fq_codel_dequeue)(redtail_time now) {
    for (;;) {
        enum list list = first_of(NEW) != NOBODY ? NEW : OLD;
        uint32_t i = first_of(list);
        if (i == NOBODY) {
            sojourn = 0;
            return REDTAIL_NONE;
        }
        queue *q = &queues[i];
        if (q->deficit <= 0) {
            q->deficit += quantum;
            append(OLD, i);
            continue;
        }
        uint32_t found = next_of(q, now);
        if (found != NOBODY) {
            q->deficit -= pool[found].size;
            sojourn = now - pool[found].enqueued;
            return pool[found].id;
        }
        /* An empty new queue goes to the old ones first, or a queue that is often empty would always be a new one. */
        if (list == NEW && first_of(OLD) != NOBODY) append(OLD, i);
        else leave(i);
    }
}

/* Queues that have become empty leave their lists when the link asks for the next packet. */
void REDTAIL_EXPORT(fq_codel_on_empty)(redtail_time now) { fq_codel_dequeue(now); }

double REDTAIL_EXPORT(fq_codel_average)(void) { return (double)sojourn / (double)REDTAIL_SECOND; }

void REDTAIL_EXPORT(fq_codel_start_measuring)(redtail_time now) {
    (void)now;
    overload_drops = 0;
}

void REDTAIL_EXPORT(fq_codel_report)(redtail_time now) {
    (void)now;
    redtail_report("overload_drops", (double)overload_drops);
}
