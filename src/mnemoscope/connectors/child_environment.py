"""The environment variables of a child process that runs a system.

A system gets the user's variables without ours and without the API keys of readers and judges.
`MNEMOSCOPE_PASS=OPENAI_API_KEY,OTHER` names variables that a system needs for itself.
"""

from __future__ import annotations

import os

from mnemoscope.models.http_errors import KEY_VARIABLES

_OURS = "MNEMOSCOPE_"
_PASSED = "MNEMOSCOPE_PASS"


def passed_on() -> set[str]:
    """The variables that the user says a system needs."""
    return {name.strip() for name in os.environ.get(_PASSED, "").split(",")}


def child_environment(scratch: str) -> dict[str, str]:
    """Our variables name data, caches and run folders; keys would let a system ask the judge."""
    passed = passed_on()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in passed or not (name.startswith(_OURS) or name in KEY_VARIABLES)
    }
    return {**kept, "TMPDIR": f"{scratch}/tmp", "MNEMOSCOPE_CACHE": f"{scratch}/cache"}
