"""The engine in Rust, as Python calls it: plans of experiments, and runs of their scenarios.

It must not know the store, backends or results; `native` loads the module, `facts` asks it what
needs no experiment.

    plans          from the text of an experiment to cases and replications
    batches        runs of the simulator
    realtime       runs in real time and in virtual machines
    kernel_queues  the kernel's queues, in words of `tc`
"""
