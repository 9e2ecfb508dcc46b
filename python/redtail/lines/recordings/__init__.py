"""Recordings of a line: what they tell of its rate, round trip and buffer, and of who sent.

It must not know which queue is advised, or how experiments are run: it makes an experiment file,
or the line to advise on (docs/how-to/advise-from-a-recording.md). What it reads comes from others,
so it is read within limits.

    reading       finds out what a file is, and unpacks it within limits; `texts` reads text,
                  `documents` JSON; `two`: two recordings of one direction each
    packets       captures; `links`: links that are not read
    flent, iperf3, crusader, irtt, mtr, networkquality
                  what test programs wrote; `transfers`: whether they filled a link
    measurement   what `redtail measure` wrote; `loaded`: transfers with pings beside them
    pings         logs of pings; `unix`, `windows`, `fping`, `hrping`: who printed them (`echoes`)
    mahimahi      traces; `unread`: texts that are known and not read
    sides         which way the packets of a capture go; `points`: which were captured twice;
                  `tcp`: what connections show
    clocks        clocks that were set, and pauses
    loads         which direction loads the line, over time
    delays, rates, buffers, mix
                  estimates
    seen          a capture, prepared; `bases`: its round trip; `captures`: its estimates together
    values        estimates with intervals, bounds and reasons, which hold by construction;
                  `found`: all of a line
    course        what it shows over time, which two recordings are compared by
    experiment    the file that a recording becomes; `line`: the line to advise on

>>> from redtail import lines
>>> found = lines.estimate("examples/cellular.trace", rtt_s=0.05)
>>> found.down.rate.text
'6.131 Mbit/s (2.76 to 11.78)'
>>> found.down.buffer.basis
'a mahimahi trace has no queue and no losses'
"""
