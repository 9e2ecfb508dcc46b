"""The story of a run in sentences: from its recorded events to the causes of what happened.

A sentence claims only what the events carry. Where they do not (a kind was not recorded, the log
was cut at its limit), it says that the cause is not in the recorded events, and why.

It must not know how a run is made, or what shows the sentences.

    events      the events of a run, by flow
    recorded    the events that a run recorded
    words       how places, times and reasons are put into words
    losses      the packets of a flow that were lost, and what was sent again
    timeouts    the causes of timeouts
    flow        the story of one flow
    overview    what happened in a run, and what is worth asking about
"""
