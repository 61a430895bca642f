"""The engine: plans units of work, runs them in processes, journals, resumes, measures."""
