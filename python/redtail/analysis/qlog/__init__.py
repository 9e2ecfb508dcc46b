"""One connection of a run as a qlog file: its packets, its recovery, and what queues did to it.

The form is qlog 0.3 in JSON: draft-ietf-quic-qlog-main-schema-05 and
draft-ietf-quic-qlog-quic-events-04, the last versions of both with that number, which qvis reads.
What TCP and queues have and QUIC's events have not stands in events of the category `redtail`.

It must not know how a run is made, where its tables are, or who writes the file.

    packets     the packets of a connection, and which of them are acknowledged
    recovery    events and samples of windows as events of qlog
    trace       the file of a connection
"""
