"""From recorded trials to figures, comparisons and verdicts. Asks no system, reads only runs."""
