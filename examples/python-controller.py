"""Compound TCP: a window that loss controls, and beside it one that delay controls.

Tan, Song, Zhang and Sridharan, "A Compound TCP Approach for High-Speed and Long Distance Networks",
IEEE INFOCOM 2006, section III, and draft-sridharan-tcpm-ctcp. There windows are in segments.
"""


class Compound:
    def __init__(self, context, alpha=0.125, beta=0.5, k=0.75, gamma=30, zeta=1):
        self.alpha, self.beta, self.k, self.gamma, self.zeta = alpha, beta, k, gamma, zeta
        self.mss = context.mss
        self.loss = context.initial_cwnd / self.mss  # cwnd of the paper
        self.delay = 0.0  # dwnd
        self.ssthresh = float("inf")
        self.base_rtt = float("inf")
        self.round_end, self.recovering = 0, False

    @property
    def window(self):
        return self.loss + self.delay

    @property
    def cwnd(self):
        return self.window * self.mss

    def set_cwnd(self, cwnd):  # the sender's own window, after a timeout
        self.loss, self.delay = cwnd / self.mss, 0.0

    def on_ack(self, sample):
        if sample.rtt is not None:
            self.base_rtt = min(self.base_rtt, sample.rtt)
        if self.recovering:
            self.recovering = sample.episode == "recovery"
        elif sample.advanced and sample.window_limited:
            slow_start = self.cwnd < self.ssthresh
            self.loss += 1 if slow_start else 1 / self.window
            if sample.rtt is not None and (sample.prior_delivered or 0) >= self.round_end:
                self.round_end = sample.total_delivered
                if not slow_start:
                    self.once_each_round(sample.rtt)

    def once_each_round(self, rtt):
        waiting = self.window * (1 - self.base_rtt / rtt)  # diff: its segments in queues
        if waiting < self.gamma:
            self.delay += max(self.alpha * self.window**self.k - 1, 0)
        else:
            self.delay = max(self.delay - self.zeta * waiting, 0)

    def on_recovery(self, event):
        window = self.window
        self.loss = max(self.loss / 2, 1)
        self.delay = max(window * (1 - self.beta) - self.loss, 0)
        self.ssthresh, self.recovering = max(self.cwnd, 2 * self.mss), True

    def on_timeout(self, event):
        self.ssthresh = max(self.cwnd / 2, 2 * self.mss)
        self.loss, self.delay, self.recovering = 1, 0.0, False

    def report(self, now):
        return {"delay_window": self.delay * self.mss, "loss_window": self.loss * self.mss}
