"""What runs: it plans, makes, repeats and interrupts the runs of experiments."""
