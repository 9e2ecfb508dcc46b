/*
 * Reno (RFC 5681) as a congestion controller of your own.
 *
 * There is an instance for each sender. redtail_plugin.h describes the functions and structures.
 */
#include "redtail_plugin.h"

static redtail_control control;
static double mss, beta;
static int recovering;
static uint64_t reductions;

static double least(double one, double other) { return one < other ? one : other; }
static double most(double one, double other) { return one > other ? one : other; }

void REDTAIL_EXPORT(my_controller_new)(const redtail_connection *connection) {
    mss = connection->mss;
    beta = redtail_number("beta", 0.5);
    control.cwnd = connection->initial_cwnd;
    control.ssthresh = __builtin_inf();
}

redtail_control *REDTAIL_EXPORT(my_controller_control)(void) { return &control; }

void REDTAIL_EXPORT(my_controller_on_ack)(const redtail_sample *sample) {
    if (recovering) { /* the window stays until fast recovery ends */
        recovering = sample->episode == REDTAIL_RECOVERY;
    } else if (sample->advanced > 0 && sample->window_limited) { /* no duplicate; the window was in use */
        if (control.cwnd < control.ssthresh) /* slow start */
            control.cwnd += least((double)sample->advanced, mss);
        else /* congestion avoidance: a segment each round trip (equation 3) */
            control.cwnd += mss * mss / control.cwnd;
    }
}

/* Equation 4; what limited transmit sent does not count. */
static void reduce(const redtail_event *event) {
    control.ssthresh = most(beta * least((double)event->flight_size, control.cwnd), 2 * mss);
    reductions += 1;
}

void REDTAIL_EXPORT(my_controller_on_recovery)(const redtail_event *event) {
    reduce(event);
    control.cwnd = control.ssthresh;
    recovering = 1;
}

void REDTAIL_EXPORT(my_controller_on_timeout)(const redtail_event *event) {
    if (!event->repeated) reduce(event);
    control.cwnd = mss;
    recovering = 0;
}

void REDTAIL_EXPORT(my_controller_report)(redtail_time now) {
    (void)now;
    redtail_report("reductions", (double)reductions);
}
