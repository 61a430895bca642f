"""A model writes a persona's history: daily logs, conversations, tool calls and questions.

`passes` has a function for each pass; what it returns can be run, estimated or previewed.
"""
