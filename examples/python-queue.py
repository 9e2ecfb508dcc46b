"""RED with a twist: the probability rises with the square of the average, not in a line."""

from collections import deque


class SquareRed:
    def __init__(self, context, min_th=15, max_th=65, max_p=0.1, w_q=0.002):
        self.context, self.packets, self.average = context, deque(), 0.0
        self.min_th, self.max_th, self.max_p, self.w_q = min_th, max_th, max_p, w_q

    def enqueue(self, packet, now):
        self.average += self.w_q * (len(self.packets) - self.average)
        early = self.context.uniform() < self.probability() and not packet.mark()
        if early or not self.context.admits(packet):
            return False  # dropped
        self.packets.append(packet)
        return True

    def dequeue(self, now):
        return self.packets.popleft()

    def probability(self):
        way = (self.average - self.min_th) / (self.max_th - self.min_th)
        return self.max_p * min(max(way, 0.0), 1.0) ** 2

    def internals(self):  # for time series
        return self.average, self.probability()
