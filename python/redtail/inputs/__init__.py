"""What an experiment refers to: queues in Python, and tables of connections."""
