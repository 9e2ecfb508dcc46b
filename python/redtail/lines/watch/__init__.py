"""What the queues of a router do, second by second, and whether its shaper is above the line.

    tc        what `tc -s -j` prints, checked: queues, classes, tins
    commands  `tc` on this computer or by another command, and `ping`
    rows      two readings: rate, delay, drops and marks of each class and direction
    judge     whether a shaper is above the line
    watching  all of it, reading by reading

It must not know recordings' estimates, an advice, or how rows are shown.
"""
