"""A dataset, a judge and a system that other packages can take as examples."""
