"""What connectors may send to a store that holds somebody's memories."""

from __future__ import annotations

from mnemoscope._store.errors import UsageError

READING = frozenset({"hello", "health", "recall", "answer"})
"""The calls that a read-only connector sends."""
READ_ONLY_NOTE = (
    "read-only: the store was asked as it was; nothing was ingested, so figures cover what it "
    "already held"
)
LIVE_NOTE = (
    "live: the system ran on the user's own store; memories that it already held compete with "
    "those of the dataset"
)
LIVE_WARNING = (
    "live=on: test memories are written to the system's own store, and a reset may empty it; keep "
    "a copy"
)


def not_sent(verb: str) -> UsageError:
    """The error for a call that would change a store that is only to be read."""
    return UsageError(
        f"{verb} is not sent: read_only allows questions only. Leave out --read-only (read_only=on)"
        " if the store may be changed"
    )


def require_live(live: bool, who: str) -> None:
    """Refuse to write to a running server whose memories a test cannot keep apart."""
    if not live:
        raise UsageError(
            f"{who} is a server that we did not start, and its mapping keeps no separate space for "
            "a test: test memories would be stored among its own, and a reset may delete them all. "
            "Send ${scope} or ${space} with every call if the server can keep spaces apart; ask "
            "only with --read-only; or say live=on if it holds nothing that you need"
        )


def notes_of(*, live: bool, read_only: bool) -> list[str]:
    """The caveats of a run on a live store."""
    return [READ_ONLY_NOTE] if read_only else [LIVE_NOTE] if live else []
