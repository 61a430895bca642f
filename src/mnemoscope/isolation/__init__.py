"""Keeps labels out of a system's reach: locked child processes, decoy labels, isolation levels."""
