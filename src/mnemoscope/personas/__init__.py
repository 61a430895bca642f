"""Personas: stories, their simulation over a thousand days, and the files that come of it."""
