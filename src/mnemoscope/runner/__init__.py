"""The runner: plans work units, runs them in processes, journals, resumes, measures."""
