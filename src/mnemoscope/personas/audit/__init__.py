"""Audit: what is wrong with a history and its questions, and what could be done about it.

Nothing here changes a question: findings go into a file beside them, and repairs are proposed.
`persona_audit.audit_persona` does it all.
"""
