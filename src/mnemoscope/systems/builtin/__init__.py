"""The built-in systems and the baselines."""
