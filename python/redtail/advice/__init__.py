"""Which queue to set on a line, and with which parameters."""
