"""Which systems of the shelf a test needs, and what becomes of it where they are not installed."""

from __future__ import annotations

from tests.optional import missing

from mnemoscope.integrations import environments

IN_CI = frozenset(
    ("qdrant", "chroma", "sqlite-vec", "langgraph", "mem0", "postgres", "server-memory")
)
"""What .ci/run installs: small, and of every kind."""


def need(name: str) -> None:
    """Go on only where the system is installed; the large ones are nowhere required."""
    if (state := environments.state(name)) != "installed":
        missing(f"{name} on the shelf is {state}", required=name in IN_CI)
