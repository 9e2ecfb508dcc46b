"""Whether a change to a line helped: two recordings, before and after, and what was promised.

    blocks      a value of a stretch of time, and how sure it is: batch means
    phases      what a recording has of each load: delays, rates, losses in blocks
    comparable  what makes two recordings not comparable
    promise     what an advice promised
    verified    the rows, the verdict, and what is missing
    report      how they are printed

It must not know how a recording is read (`recordings` tells its course over time), or how an advice
is made: it reads the JSON of one.
"""
