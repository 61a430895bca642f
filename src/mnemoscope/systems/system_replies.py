"""Reads what a system returned: hits, receipts, statistics, answers.

What leaves this module has the types that the journal can store, and a limited size. A value of
another type may run the system's code when it is compared, printed or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from numbers import Integral, Real
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import BadReply, error_text
from mnemoscope._store.jsonl import printable
from mnemoscope.systems.plain_hits import PlainHits
from mnemoscope.types import Hit, Receipt

_LONGEST_ID = 10_000
_MOST_TEXT = 64 << 20
"""Characters of all texts of a reply."""
_MOST_SOURCES = 1_000_000
"""Sources of all hits of a reply."""
_MOST_COUNTERS = 100
_LONGEST_NAME = 100
_LARGEST = 2**53
"""The largest number that every reader of JSON reads as it was written."""


class CheckedHits(list[Hit]):
    """Hits of plain types, whose sizes and characters can be recorded."""


def short_hits(hits: list[Hit], size: int) -> list[Hit]:
    """Hits that were decoded from so many bytes of UTF-8: few bytes hold nothing too long."""
    return CheckedHits(hits) if size <= _LONGEST_ID else hits


def short_plain_hits(ids: list[str], scores: list[float | None], size: int) -> Sequence[Hit]:
    """The same of hits that are memories as they are."""
    return PlainHits(ids, scores) if size <= _LONGEST_ID else list(map(Hit, ids, scores))


def read_hits(reply: object, most: int, *, decoded: bool = False) -> Sequence[Hit]:
    """At most so many hits from what a system returns: Hits, ids, (id, score) pairs or dicts.

    `decoded` says that our own client of a host process made the reply, so that its types are
    known. A system can import the same classes and fill them with anything.
    """
    if decoded and (type(reply) is CheckedHits or type(reply) is PlainHits):
        return reply[:most]
    if isinstance(reply, str | bytes | dict) or not isinstance(reply, Iterable):
        raise BadReply(f"recall returned {short(reply)}; expected a list of hits or ids")
    entries = list(islice(reply, most))
    if set(map(type, entries)) <= {Hit}:
        kinds = {
            (type(h.id), type(h.score), type(h.text), h.sources is _NO_SOURCES) for h in entries
        }
        if kinds <= _PLAIN_KINDS:
            return entries if _are_short(entries) else _checked(entries)
    return _checked([_read_hit(entry) for entry in entries])


_NO_SOURCES: tuple[str, ...] = ()
_PLAIN_KINDS = {(str, float, str, True), (str, type(None), str, True)}
"""Field types of a hit that the journal can store; a Hit does not check them."""


def _are_short(hits: list[Hit]) -> bool:
    """Whether all ids and texts together are ASCII and shorter than one id may be.

    Most replies are, and one look at all takes a quarter of the time that a look at each does.
    """
    texts = "".join([hit.id + hit.text for hit in hits])
    return len(texts) <= _LONGEST_ID and texts.isascii()


def are_usual_ids(ids: list[str]) -> bool:
    """Whether no id needs a closer look before it is recorded."""
    joined = "".join(ids)
    return joined.isascii() and (
        len(joined) <= _LONGEST_ID or max(map(len, ids), default=0) <= _LONGEST_ID
    )


def _read_hit(entry: object) -> Hit:
    match entry:
        case bool():
            pass
        case str() | Integral():
            return Hit(exact(entry))
        case (str() | Integral() as id, Real() | None as score):
            return Hit(exact(id), None if score is None else float(score))
        case Hit():
            return _read_fields(msgspec.structs.asdict(entry))
        case {"id": id, **rest}:
            return _read_fields({**rest, "id": id})
    lacks = f"; it has {', '.join(map(str, entry))[:80]}" if isinstance(entry, dict) else ""
    raise BadReply(
        f"recall returned {short(entry)} as a hit; expected an id, a pair (id, score), or a dict "
        f"or Hit with id and optional score, text and sources{lacks}"
    )


def _read_fields(fields: dict[Any, Any]) -> Hit:
    """A hit from its fields; ids may be integers, and scores of numpy's types."""
    if isinstance(fields["id"], Integral | str):
        fields["id"] = exact(fields["id"])
    if isinstance(fields.get("score"), Real):
        fields["score"] = float(fields["score"])
    if isinstance(fields.get("text"), str):
        fields["text"] = exact(fields["text"])
    try:
        hit = msgspec.convert(fields, Hit)
    except msgspec.ValidationError as error:
        raise BadReply(f"recall returned a hit that cannot be read: {error}") from None
    if len(hit.sources) > _MOST_SOURCES:
        raise BadReply(f"recall returned a hit with {len(hit.sources):,} sources")
    return msgspec.structs.replace(hit, sources=tuple(map(exact, hit.sources)))


def _checked(hits: list[Hit]) -> list[Hit]:
    """The hits, if they are of a size and of characters that can be recorded."""
    # Most replies: short ASCII ids and nothing else, so their hits are not checked one by one.
    if not any(hit.text or hit.sources for hit in hits):
        ids = "".join([hit.id for hit in hits])
        if len(ids) <= _LONGEST_ID and ids.isascii():
            return hits
    if sum(len(hit.text) for hit in hits) > _MOST_TEXT:
        raise BadReply(f"recall returned texts of more than {_MOST_TEXT >> 20} million characters")
    if sum(len(hit.sources) for hit in hits) > _MOST_SOURCES:
        raise BadReply(f"recall returned hits with more than {_MOST_SOURCES:,} sources")
    for place, hit in enumerate(hits):
        _check_id(hit.id)
        for source in hit.sources:
            _check_id(source)
        if not hit.text.isascii():
            hits[place] = msgspec.structs.replace(hit, text=printable(hit.text))
    return hits


def _check_id(id: str) -> None:
    if len(id) > _LONGEST_ID:
        raise BadReply(
            f"recall returned an id of {len(id):,} characters; at most {_LONGEST_ID:,} are read"
        )
    if not id.isascii() and printable(id) != id:
        from mnemoscope.text.display import one_line

        raise BadReply(f"recall returned an id that is not valid Unicode: {one_line(id, 80)}")


def read_receipt(reply: object) -> Receipt:
    """The receipt of a `remember`, as the journal will contain it."""
    if not isinstance(reply, Receipt | dict):
        return Receipt()
    try:
        written = msgspec.json.encode(msgspec.convert(msgspec.to_builtins(reply), Receipt))
        if len(written) > _MOST_TEXT:
            raise BadReply(f"remember returned a receipt of more than {_MOST_TEXT >> 20} MiB")
        return msgspec.json.decode(written, type=Receipt)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        raise BadReply(
            f"remember returned a receipt that cannot be read: {error_text(error)}"
        ) from None


class Counted(NamedTuple):
    """A system's report of its index size and its counters."""

    index_bytes: int | None
    counters: dict[str, int]


def read_counters(report: Any) -> Counted:
    """What `stats` returned; an error if one of its numbers cannot be recorded."""
    from mnemoscope.text.display import one_line  # a host does not need it

    counters: dict[str, int] = {}
    for key, number in islice(report.items(), _MOST_COUNTERS):
        whole = int.__int__(int(number))
        if not 0 <= whole <= _LARGEST:
            raise BadReply(f"stats returned a counter that is not between 0 and {_LARGEST:,}")
        counters[one_line(exact(key), _LONGEST_NAME)] = whole
    return Counted(counters.pop("index_bytes", None), counters)


def read_answer(reply: object) -> str:
    if not isinstance(reply, str):
        raise BadReply(f"answer returned {short(reply)}; expected a string")
    if len(reply) > _MOST_TEXT:
        raise BadReply(f"answer returned more than {_MOST_TEXT >> 20} million characters")
    return printable(exact(reply))


def exact(value: object) -> str:
    """The text of a value as a plain string: a subclass may have its own comparison and hash."""
    return str.__str__(str(value))


def short(value: object) -> str:
    """A value of the wrong type, for an error message."""
    try:
        text = f"{value!r:.80}"
    except BaseException as error:
        text = f"whose repr raises {type(error).__name__}"
    return f"{type(value).__name__} {text}"
