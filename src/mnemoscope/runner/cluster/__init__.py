"""Runs work units on the nodes of a cluster; the labels stay in the process that writes the run."""
