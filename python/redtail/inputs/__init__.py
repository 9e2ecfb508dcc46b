"""What an experiment names beside itself: queues in Python, and tables of connections."""
