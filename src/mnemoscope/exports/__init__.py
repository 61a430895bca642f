"""Exports: figures, questions, rankings and comparisons in the formats of other tools.

Every function gets what was read from checked runs and returns the content of files.
"""
