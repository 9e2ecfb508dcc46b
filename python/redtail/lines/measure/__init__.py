"""Measures a line: loads it in RRUL's form, and probes its delay at the same time.

The line is loaded against a server of its user's own: idle, downloads, uploads, and both at once,
as the RRUL specification has it (Täht 2012), which loads it with both alone. It must not know what
is advised, and reads nothing of a recording but its form (`recordings.measurement`). What comes
from the network is bounded in time, memory and form.

    run         a measurement from begin to end: `measure_line`
    options     what it may be asked for, and where its defaults come from
    record      what was measured up to now; `estimate` reads its file
    protocol    what client and server of redtail say to each other
    server      the server: `serve`
    client      a measurement against it
    stamps      when the kernel received a packet
    programs    a measurement by programs: iperf3, ping, irtt
    summary     rates, delays and responsiveness in each phase
    file        the file of a measurement
"""
