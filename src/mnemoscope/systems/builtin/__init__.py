"""The systems that come with Mnemoscope, and the baselines."""
