"""Texts that are known and not read, and the way out: another option of the same program."""

from __future__ import annotations

import re
from collections.abc import Iterable

from redtail.lines.recordings.echoes import LONGEST_LINE

_HINTS = (
    (
        re.compile(r"Connecting to host .*, port [0-9]|\[ *ID\] Interval +Transfer +Bit"),
        "the text of iperf3, whose JSON is read: iperf3 -J",
    ),
    (
        re.compile(r"(Client connecting to|Server listening on) .*TCP|\[ *ID\] Interval +Transfer"),
        "the text of iperf 2, which is not read; `iperf3 -J` is",
    ),
    (
        re.compile(r"==== SUMMARY ====|(Uplink|Upload|Downlink|Download) capacity: "),
        "the text of networkQuality, whose JSON is read: networkQuality -c",
    ),
    (re.compile(r"seq=[0-9]+ rtt=\S+ +rd="), "the text of irtt, whose JSON is read: irtt -o FILE"),
    (re.compile(r"<\?xml .*|<MTR "), "XML, which is not read; of mtr JSON is: mtr --json"),
    (
        re.compile(r"(traceroute|tracepath) to |Tracing route to "),
        "the text of traceroute, which is not read; reports of mtr are: mtr --report",
    ),
    (
        re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6} (IP6?|ARP)\b"),
        "the text of tcpdump, whose packets are read: tcpdump -w FILE",
    ),
    (
        re.compile(r"\s*(Speedtest by Ookla|Retrieving speedtest\.net|Testing download speed)"),
        "the text of a speed test, which has no course over time; a capture of its packets has: "
        "tcpdump -s 128 -w FILE",
    ),
)


def hint(head: Iterable[str]) -> str | None:
    """Return what a text is, and what of the same program is read; None if it is not known.

    >>> hint(["Connecting to host 192.0.2.1, port 5201"])
    'the text of iperf3, whose JSON is read: iperf3 -J'
    """
    some = [line[:LONGEST_LINE] for line in head]
    return next((told for form, told in _HINTS if any(form.match(line) for line in some)), None)
