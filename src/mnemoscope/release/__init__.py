"""Releases: decisions, reports, signatures and notes that cannot overclaim."""
