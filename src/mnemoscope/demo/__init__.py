"""The demo corpus: half a year of an invented six-person team's assistant memory, for a first run.

Three files in the format of `mnemoscope.datasets.strata`, written for Mnemoscope. Every person,
company and product in them is made up. Memories come with near misses and with statements that
later ones supersede, so that word overlap alone does not find everything.
"""
