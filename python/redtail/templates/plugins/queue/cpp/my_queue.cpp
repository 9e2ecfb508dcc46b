// A queue that drops the packets that have waited for longer than `deadline` seconds, when their turn comes.
//
// Replace the law in `dequeue`. The interface is described in redtail_plugin.h. The module is compiled without the
// standard library of C++, whose allocation and exceptions need an operating system; templates and classes work.
#include "redtail_plugin.h"

namespace {

// Packets in order of arrival.
template <typename T, uint32_t most>
class Ring {
public:
    bool full() const { return count == most; }
    bool empty() const { return count == 0; }
    void push(T value) { items[(first + count++) % most] = value; }
    T pop() {
        T value = items[first];
        first = (first + 1) % most;
        count -= 1;
        return value;
    }

private:
    T items[most];
    uint32_t first, count;
};

struct Waiting {
    uint64_t id;
    redtail_time enqueued;
};

class Deadline {
public:
    void start(const redtail_context &given) {
        context = given;
        deadline = static_cast<redtail_time>(redtail_number("deadline", 0.05) * REDTAIL_SECOND);
        if (deadline == 0) redtail_fail("params.deadline is 0; accepted: seconds, more than 0");
    }

    bool enqueue(const redtail_packet &packet, redtail_time now) {
        if (!redtail_admits(&context, &packet) || ring.full()) return false;
        ring.push({packet.id, now});
        return true;
    }

    uint64_t dequeue(redtail_time now) {
        for (;;) {
            Waiting head = ring.pop();
            // The last one is sent in any case, so that the link does not idle.
            if (now - head.enqueued <= deadline || ring.empty()) return head.id;
            redtail_drop(head.id, REDTAIL_EARLY);
            late += 1;
        }
    }

    uint64_t late;

private:
    redtail_context context;
    redtail_time deadline;
    Ring<Waiting, 65536> ring;
};

Deadline queue; // zero at the start

} // namespace

REDTAIL_C void REDTAIL_EXPORT(my_queue_new)(const redtail_context *context) { queue.start(*context); }

REDTAIL_C int32_t REDTAIL_EXPORT(my_queue_enqueue)(const redtail_packet *packet, redtail_time now) {
    return queue.enqueue(*packet, now);
}

REDTAIL_C uint64_t REDTAIL_EXPORT(my_queue_dequeue)(redtail_time now) { return queue.dequeue(now); }

REDTAIL_C void REDTAIL_EXPORT(my_queue_start_measuring)(redtail_time) { queue.late = 0; }

REDTAIL_C void REDTAIL_EXPORT(my_queue_report)(redtail_time) {
    redtail_report("late", static_cast<double>(queue.late));
}
