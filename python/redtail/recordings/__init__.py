"""Recordings of a line: what they tell of its rate, round trip and buffer, and of who sent.

>>> from redtail import recordings
>>> found = recordings.estimate("examples/cellular.trace", rtt_s=0.05)
>>> found.down.rate.text
'6.131 Mbit/s (2.76 to 11.78)'
>>> found.down.buffer.basis
'a mahimahi trace has no queue and no losses'
"""

from redtail.recordings.experiment import text, write
from redtail.recordings.found import Direction, Flows, Found
from redtail.recordings.reading import estimate
from redtail.recordings.values import Estimated

__all__ = ["Direction", "Estimated", "Flows", "Found", "estimate", "text", "write"]
