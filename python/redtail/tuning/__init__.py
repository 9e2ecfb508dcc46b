"""Searches the parameters of a queue over the loads of an experiment: `redtail tune`."""
