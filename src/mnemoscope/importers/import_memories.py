"""Import a source: read it, leave out what must not be kept, mask secrets, write the folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple

import mnemoscope
from mnemoscope._store.errors import DataError, MnemoscopeError, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.datasets.imported_folder import ImportRecord
from mnemoscope.datasets.leakage import LABEL_ID
from mnemoscope.datasets.strata import ImportedLine
from mnemoscope.importers.corpus_draft import CorpusDraft
from mnemoscope.importers.kinds import detect, reader_of
from mnemoscope.importers.secret_scan import MaskedText, is_masked, mask, shown
from mnemoscope.importers.source_record import ImportSource, LeftOut, SourceRecord
from mnemoscope.types import Scalar

SecretPolicy = Literal["mask", "withhold", "fail"]
Advance = Callable[[int, float | None], None]
"""Called with the memories so far, and the share of the source that was read."""

SECRET, REPEATED = "contains a secret", "repeated"
PLACES_NAMED = 10
_MOST_KNOWN = 10_000
_EVERY = 200
_PLAIN_PLACE = re.compile(r"line \d+|\w{1,16}")
_OPAQUE = re.compile(r"[0-9]{1,9}|(?=.*[a-f])(?=.*[0-9])(?:[a-z]{1,8}-)?[0-9a-f-]{8,}")
"""Ids that say nothing: row numbers, UUIDs and hashes. A longer number may be one of a phone."""


class FoundSecret(NamedTuple):
    """A secret in a source: its kind and its place, never its value."""

    kind: str
    place: str


class Imported(NamedTuple):
    """What an import did."""

    path: Path
    """The dataset folder."""
    record: ImportRecord
    secrets: tuple[FoundSecret, ...]
    """The first of them; left-out.jsonl has all."""
    notes: tuple[str, ...]
    """What the reader of the source decided."""


def import_source(
    source: ImportSource,
    out: Path,
    *,
    kind: str | None = None,
    secrets: SecretPolicy = "mask",
    private: bool = False,
    overwrite: bool = False,
    advance: Advance | None = None,
) -> Imported:
    """Write the memories of the source as a dataset folder."""
    if secrets not in ("mask", "withhold", "fail"):
        raise UsageError(f"--secrets {secrets}: must be mask, withhold or fail")
    kind = kind or detect(source.path)
    read = reader_of(kind)
    with CorpusDraft(out, overwrite=overwrite) as draft:
        one = _Import(draft, secrets, private)
        number = 0
        for number, found in enumerate(read(source), 1):
            one.take(found)
            if advance is not None and number % _EVERY == 0:
                advance(one.memories, source.share)
        if not one.memories:
            raise DataError(_nothing(one.left_out), file=source.path)
        record = draft.finish(
            ImportRecord(
                mnemoscope=mnemoscope.__version__,
                imported=datetime.now(UTC).replace(microsecond=0),
                kind=kind,
                memories=one.memories,
                left_out=dict(one.left_out),
                secrets=dict(one.secrets),
                secrets_were=secrets if one.secrets else "",
                private=private,
            )
        )
    return Imported(draft.out, record, tuple(one.named), tuple(source.notes))


def _nothing(left_out: Counter[str]) -> str:
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in left_out.most_common())
    return f"contains no memories{f'; left out: {reasons}' if reasons else ''}"


@dataclass
class _Import:
    """The state of one import."""

    _draft: CorpusDraft
    _policy: SecretPolicy
    _private: bool
    memories: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    secrets: Counter[str] = field(default_factory=Counter)
    named: list[FoundSecret] = field(default_factory=list)
    _known_fields: dict[tuple[str, bool], MaskedText] = field(default_factory=dict)
    """Sessions, speakers and titles recur."""
    _ids: dict[str, bytes] = field(default_factory=dict)
    """Each id to the hash of its text."""

    def take(self, found: SourceRecord | LeftOut) -> None:
        if isinstance(found, LeftOut):
            self._leave_out(found)
            return
        masked = self._masked(found)
        if masked.split is None:
            self._keep(masked)
            return
        for part in masked.split(masked.text):
            if isinstance(part, LeftOut):
                self._leave_out(part)
            else:  # names of files and headings are parts of it now
                self._keep(self._masked(part, again=True))

    def _masked(self, record: SourceRecord, *, again: bool = False) -> SourceRecord:
        """The record without secrets in any of its fields."""
        text, secrets = mask(record.text, again=again)
        place = _shown_place(record.place)
        for secret in secrets:
            file = place.partition(", line ")[0]
            line = record.line + secret.line - 1
            self._note_secret(secret.kind, f"{file}, line {line}" if record.line else place)
        changed: dict[str, object] = {"text": text, "place": place}
        for name in ("session", "speaker", "category", "tags", "keywords"):
            changed[name] = self._plain(getattr(record, name), f"{place} ({name})", again)
        metadata: dict[str, Scalar] = {}
        for name, value in record.metadata.items():
            here = f"{place} ({_shown_place(name)})"
            metadata[self._plain(name, here, again)] = (
                self._plain(value, here, again) if isinstance(value, str) else value
            )
        changed["metadata"] = metadata
        if isinstance(record.key, str) and is_masked(self._plain(record.key, f"{place} (id)")):
            changed |= {"key": None, "origin": record.key}
        return record._replace(**changed)  # type: ignore[arg-type]

    def _plain(self, text: str, place: str, again: bool = False) -> str:
        if not text:
            return text
        masked, secrets = self._known_fields.get((text, again)) or mask(text, again=again)
        if len(self._known_fields) < _MOST_KNOWN:
            self._known_fields[text, again] = MaskedText(masked, secrets)
        for secret in secrets:
            self._note_secret(secret.kind, place)
        return masked

    def _note_secret(self, kind: str, place: str) -> None:
        if self._policy == "fail":
            raise MnemoscopeError(
                f"{place}: contains a secret ({kind}); remove it, or pass --secrets mask or "
                "--secrets withhold"
            )
        self.secrets[kind] += 1
        if len(self.named) < PLACES_NAMED:
            self.named.append(FoundSecret(kind, place))
        done = "masked" if self._policy == "mask" else "withheld"
        self._draft.note({"place": place, "secret": kind, "done": done})

    def _leave_out(self, found: LeftOut) -> None:
        self.left_out[found.reason] += 1
        self._draft.note({"place": _shown_place(found.place), "left_out": found.reason})

    def _keep(self, record: SourceRecord) -> None:
        fields = [record.text, record.session, record.speaker, record.category, record.tags]
        fields += [record.keywords, *map(str, record.metadata), *map(str, record.metadata.values())]
        if self._policy == "withhold" and any(map(is_masked, fields)):
            self._leave_out(LeftOut(SECRET, record.place))
            return
        id = self._id(record)
        if id is None:
            self._leave_out(LeftOut(REPEATED, record.place))
            return
        self.memories += 1
        self._draft.add(
            ImportedLine(
                id=id,
                content=_clean(record.text),
                category=_clean(record.category) or None,
                tags=_clean(record.tags) or None,
                expanded_keywords=_clean(record.keywords) or None,
                importance=record.importance,
                at=record.at,
                session=_unlabelled(_clean(record.session)),
                speaker=_clean(record.speaker),
                metadata={
                    _clean(name): _clean(value) if isinstance(value, str) else value
                    for name, value in record.metadata.items()
                },
            )
        )

    def _id(self, record: SourceRecord) -> int | str | None:
        """The id of the memory; None if the same memory was kept before."""
        text = sha256(record.text.encode("utf-8", "surrogatepass")).digest()
        key = record.key
        if key is not None and self._private and not _OPAQUE.fullmatch(str(key)):
            key = _hashed(str(key))
        if key is not None:
            if (known := self._ids.setdefault(str(key), text)) is not text:
                if known == text:
                    return None
                problem = f"the id of {record.place} occurs more than once, with another text"
                raise UsageError(f"{problem}; name a column of unique ids with --id")
            return key if isinstance(key, int) else _unlabelled(printable(key))
        origin = record.origin or f"{record.at}#{record.session}#{record.speaker}#{record.text}"
        for number in count(1):
            id = _hashed(origin if number == 1 else f"{origin}#{number}")
            known = self._ids.setdefault(id, text)
            if known is text:
                return id
            if known == text:
                return None
        raise AssertionError("numbers do not end")


def _unlabelled(name: str) -> str:
    """The name; hashed if the leakage scan would take it for a label, such as `answers.md`."""
    return _hashed(name) if LABEL_ID.search(name) else name


def _hashed(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _clean(text: str) -> str:
    return printable(shown(text))


def _shown_place(place: str) -> str:
    """The place; a name of a file can contain a secret, too."""
    if _PLAIN_PLACE.fullmatch(place):
        return place
    return printable(shown(mask(place).text))
