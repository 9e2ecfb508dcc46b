"""What is stored: the results of runs on disk, in segments, and in an object store."""
