"""What a text refers to: protocols by their name, runs by their path or fingerprint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.protocols import Protocol
from mnemoscope.release.claim_patterns import estimates, metrics
from mnemoscope.release.state import RunRecord
from mnemoscope.release.statements import Statement

_PATH = re.compile(r"(?<![\w:/])(?:\.{0,2}/)?[\w.+,=-]+(?:/[\w.+,=-]+)+/?")
_HEX = re.compile(r"\b[0-9a-f]{12,64}\b")


def status(run: RunDirectory) -> str:
    """VERIFIED, UNVERIFIED or BLOCKED."""
    from mnemoscope.analysis.verify import verify

    return str(verify(run).status)


def is_named(protocol: Protocol, text: str) -> bool:
    """Whether a text names the protocol, by its citation or its id, across line breaks too."""
    flat = " ".join(re.sub(r"[*`_]", "", text).split()).lower()
    return any(name.replace("_", "").lower() in flat for name in (protocol.cite, protocol.id))


def cited_runs(
    said: Sequence[Statement],
    folder: Path,
    known: Mapping[Path, RunRecord],
    states: Mapping[Path, str],
) -> Iterator[tuple[Path, int, str]]:
    """Runs that are cited although they are not VERIFIED, with line and state.

    A text may say that a run is BLOCKED or UNVERIFIED; it may not quote its numbers. `states` are
    those that are known already. Each run is reported once, however its path is written.
    """
    states = {path.resolve(): state for path, state in states.items()}
    reported = set[Path]()
    for one in said:
        context = " ".join(s.text for s in said if s.block == one.block and s.kind == one.kind)
        if one.kind == "row":
            context = one.text
        for path in _runs(one.text, folder, known):
            if path not in states:
                states[path] = status(RunDirectory(path))
            disclosed = states[path] in context and not (metrics(context) and estimates(context))
            if states[path] != "VERIFIED" and not disclosed and path not in reported:
                reported.add(path)
                yield path, one.line, states[path]


def _runs(text: str, folder: Path, known: Mapping[Path, RunRecord]) -> set[Path]:
    found = set()
    for token in _PATH.findall(text):
        named = token.rstrip("/.,")
        for root in (folder, Path.cwd()):
            for place in (root / named, (root / named).parent):
                if (place / "manifest.json").is_file():
                    found.add(place.resolve())
    for prefix in _HEX.findall(text):
        found |= {
            path.resolve() for path, run in known.items() if run.fingerprint.startswith(prefix)
        }
    return found
