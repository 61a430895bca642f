"""Skips or fails tests whose integration is not installed."""

from __future__ import annotations

from tests.optional import missing

from mnemoscope.integrations import environments

IN_CI = frozenset(
    ("qdrant", "chroma", "sqlite-vec", "langgraph", "mem0", "postgres", "server-memory")
)
"""The integrations that .ci/run installs."""


def need(name: str) -> None:
    """Continue only if the system is installed; the large ones are never required."""
    if (state := environments.state(name)) != "installed":
        missing(f"the integration {name} is {state}", required=name in IN_CI)
