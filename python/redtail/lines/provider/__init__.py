"""Advises the shaper of an access provider: subscribers with plans behind one link.

    plans       the plans, as a file or a text gives them
    simulated   the experiment: a sample of the subscribers, two loads, and ways to shape them
    answer      what was found, one row for each plan, and what to set
    report      the same as text
    libreqos    files for LibreQoS

It uses the words of `lines.advice` and knows no routers.
"""
