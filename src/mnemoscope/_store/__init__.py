"""The nouns, the run directory, errors. Imports nothing else of ours."""
