"""What follows from the runs: results, intervals, comparisons, and what has no interval."""
