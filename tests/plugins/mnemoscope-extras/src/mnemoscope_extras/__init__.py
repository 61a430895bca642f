"""A dataset, a judge, a system and a metric: an example of a package that adds all four."""
