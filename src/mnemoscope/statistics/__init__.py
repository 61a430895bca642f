"""How sure a number is: intervals that know their sample and its clusters."""

from mnemoscope.statistics.intervals import Bootstrap, Interval, bootstrap, wilson

__all__ = ["Bootstrap", "Interval", "bootstrap", "wilson"]
