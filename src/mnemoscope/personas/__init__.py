"""Personas: simulating histories from stories, writing them with a model, and auditing them."""
