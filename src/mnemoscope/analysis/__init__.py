"""Compute figures, comparisons and verdicts from recorded runs; systems are never called here."""
