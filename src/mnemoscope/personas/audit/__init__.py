"""Audit: finds errors in the logs and questions of a persona, and proposes repairs.

It writes findings and proposals to files and does not change the questions.
`persona_audit.audit_persona` runs the whole audit.
"""
