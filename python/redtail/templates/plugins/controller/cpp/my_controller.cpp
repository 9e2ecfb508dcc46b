// Reno (RFC 5681) as a congestion controller of your own.
//
// There is an instance for each sender. redtail_plugin.h describes the functions and structures. The module is compiled
// without the standard library of C++, whose allocation and exceptions need an operating system.
#include "redtail_plugin.h"

namespace {

template <typename T>
T least(T one, T other) { return one < other ? one : other; }
template <typename T>
T most(T one, T other) { return one > other ? one : other; }

class Reno {
public:
    void start(const redtail_connection &connection) {
        mss = connection.mss;
        beta = redtail_number("beta", 0.5);
        control.cwnd = connection.initial_cwnd;
        control.ssthresh = __builtin_inf();
    }

    void on_ack(const redtail_sample &sample) {
        if (recovering) { // the window stays until fast recovery ends
            recovering = sample.episode == REDTAIL_RECOVERY;
        } else if (sample.advanced > 0 && sample.window_limited) { // no duplicate; the window was in use
            if (control.cwnd < control.ssthresh) // slow start
                control.cwnd += least(static_cast<double>(sample.advanced), mss);
            else // congestion avoidance: a segment each round trip (equation 3)
                control.cwnd += mss * mss / control.cwnd;
        }
    }

    void on_recovery(const redtail_event &event) {
        reduce(event);
        control.cwnd = control.ssthresh;
        recovering = true;
    }

    void on_timeout(const redtail_event &event) {
        if (!event.repeated) reduce(event);
        control.cwnd = mss;
        recovering = false;
    }

    redtail_control control;
    uint64_t reductions;

private:
    // Equation 4; what limited transmit sent does not count.
    void reduce(const redtail_event &event) {
        double flight = least(static_cast<double>(event.flight_size), control.cwnd);
        control.ssthresh = most(beta * flight, 2 * mss);
        reductions += 1;
    }

    double mss, beta;
    bool recovering;
};

Reno reno; // zero at the start

} // namespace

REDTAIL_C void REDTAIL_EXPORT(my_controller_new)(const redtail_connection *connection) { reno.start(*connection); }

REDTAIL_C redtail_control *REDTAIL_EXPORT(my_controller_control)(void) { return &reno.control; }

REDTAIL_C void REDTAIL_EXPORT(my_controller_on_ack)(const redtail_sample *sample) { reno.on_ack(*sample); }

REDTAIL_C void REDTAIL_EXPORT(my_controller_on_recovery)(const redtail_event *event) { reno.on_recovery(*event); }

REDTAIL_C void REDTAIL_EXPORT(my_controller_on_timeout)(const redtail_event *event) { reno.on_timeout(*event); }

REDTAIL_C void REDTAIL_EXPORT(my_controller_report)(redtail_time) {
    redtail_report("reductions", static_cast<double>(reno.reductions));
}
