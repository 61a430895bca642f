"""Authoring: lives written by a language model, pass by pass, resumable and audited."""
