"""Audit: what is wrong with a life and its questions, and what could be done about it.

Nothing here changes a question: findings go into a trail beside them, and repairs are proposed.
"""
