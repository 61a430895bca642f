"""Chats that WhatsApp exports as text, from Android and iOS, with the dates of many countries.

A line that begins with a time begins a message; other lines continue it. Whether the day or the
month comes first is decided from all dates of the file. Times have no zone and count as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.importers.json_source import Export, ExportFile, opened
from mnemoscope.importers.source_record import (
    DELETED,
    DateOrder,
    ImportSource,
    LeftOut,
    SourceRecord,
    Yielded,
)

_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SPACES = re.compile("[\u00a0\u2007\u202f]")
_START = re.compile(
    r"\[?(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4})\.?,?\s+(?:\w{2,4}\s+)??"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d\d)(?:[:.](?P<second>\d\d))?"
    r"\s?(?P<half>[AaPp]\.?\s?[Mm]\.?)?(?:\]\s?|\s[-–]\s)(?P<rest>.*)"
)
_MEDIA = re.compile(
    r"<[^<>]{3,60}>|.{0,30}\b(?:image|video|audio|GIF|sticker|document|Contact card|media|file)"
    r" omitted",
    re.IGNORECASE,
)
_DELETED = re.compile(
    r"(?:This message was deleted|You deleted this message|Diese Nachricht wurde gelöscht"
    r"|Du hast diese Nachricht gelöscht|Se eliminó este mensaje|Eliminaste este mensaje"
    r"|Ce message a été supprimé|Vous avez supprimé ce message|Questo messaggio è stato eliminato"
    r"|Hai eliminato questo messaggio|Mensagem apagada|Esta mensagem foi apagada"
    r"|Dit bericht is verwijderd|U hebt dit bericht verwijderd)\.?"
)
_EVENT = "an event, not a message"


class MessageStart(NamedTuple):
    """The first line of a message."""

    date: tuple[int, int, int]
    hour: int
    minute: int
    second: int
    rest: str


def is_whatsapp(beginning: str) -> bool:
    """Whether one of the first lines of a text begins a message."""
    return any(_start(_clean(line)) for line in beginning.split("\n")[:5])


def read_whatsapp(source: ImportSource) -> Yielded:
    with opened(source.path) as export:
        files = [one for one in export.named(r".*\.txt") if is_whatsapp(_beginning(export, one))]
        if not files:
            raise DataError("contains no chat of WhatsApp", file=source.path)
        for file in files:
            yield from _chat(source, export, file)


def _beginning(export: Export, file: ExportFile) -> str:
    return next(export.blocks(file), b"")[:4000].decode("utf-8-sig", "replace")


def _chat(source: ImportSource, export: Export, file: ExportFile) -> Yielded:
    order = source.date_order or _order(source, export, file)
    chat = file.name.rsplit("/", 1)[-1].removesuffix(".txt")
    first, start, lines = 0, None, list[str]()
    for number, line in _lines(export, file):
        begun = _start(line)
        if begun is None:
            lines.append(line)
            continue
        if start is not None:
            yield _message(start, lines, order, chat, f"{file.name}, line {first}", export, file)
        first, start, lines = number, begun, []
        source.share = None
    if start is not None:
        yield _message(start, lines, order, chat, f"{file.name}, line {first}", export, file)


def _message(
    start: MessageStart,
    lines: list[str],
    order: DateOrder,
    chat: str,
    place: str,
    export: Export,
    file: ExportFile,
) -> SourceRecord | LeftOut:
    speaker, said, text = start.rest.partition(": ")
    if not said and start.rest.endswith(":"):
        speaker, said, text = start.rest[:-1], ":", ""
    text = "\n".join([text, *lines]).strip()
    if not said:
        return LeftOut(_EVENT, place)
    if _DELETED.fullmatch(text):
        return LeftOut(DELETED, place)
    if not text or _MEDIA.fullmatch(text):
        return LeftOut("media without text", place)
    at = _time(start, order)
    if at is None:
        line = int(place.rsplit(" ", 1)[-1])
        raise DataError(
            f"the date is not valid in the order {order}; say the order with --date-order",
            file=export.place(file),
            line=line,
        )
    return SourceRecord(
        place,
        text,
        origin=f"{chat}#{at.isoformat()}#{speaker}#{text}",
        at=at,
        session=chat,
        speaker=speaker.removeprefix("~").strip(),
    )


def _lines(export: Export, file: ExportFile) -> Iterator[tuple[int, str]]:
    """The lines of the file, by number, without marks of direction."""
    rest, number = b"", 0
    try:
        for block in export.blocks(file):
            *complete, rest = (rest + block).split(b"\n")
            for line in complete:
                number += 1
                yield number, _clean(line.decode())
        number += 1
        if rest:
            yield number, _clean(rest.decode())
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: {error.reason}"
        raise DataError(problem, file=export.place(file), line=number) from None


def _clean(line: str) -> str:
    return _SPACES.sub(" ", _MARKS.sub("", line)).rstrip("\r")


def _start(line: str) -> MessageStart | None:
    found = _START.match(line)
    if found is None:
        return None
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    first, second, third = map(int, re.split(r"[./-]", found["date"]))
    return MessageStart(
        (first, second, third), hour, int(found["minute"]), int(found["second"] or 0), found["rest"]
    )


def _time(start: MessageStart, order: DateOrder) -> datetime | None:
    places = dict(zip(order, start.date, strict=True))
    year = places["y"] + (2000 if places["y"] < 100 else 0)
    try:
        return datetime(
            year, places["m"], places["d"], start.hour, start.minute, start.second, tzinfo=UTC
        )
    except ValueError:
        return None


def _order(source: ImportSource, export: Export, file: ExportFile) -> DateOrder:
    """The order in which all dates are valid, and go back in time least often."""
    orders: tuple[DateOrder, ...] = ("dmy", "mdy", "ymd")
    backwards = dict.fromkeys(orders, 0)
    last: dict[str, datetime] = {}
    years_first = False
    for _, line in _lines(export, file):
        start = _start(line)
        if start is None:
            continue
        years_first = years_first or start.date[0] > 31
        for order in list(backwards):
            at = _time(start, order)
            if at is None or (order == "ymd") != years_first:
                del backwards[order]
                continue
            backwards[order] += order in last and at < last[order]
            last[order] = at
    if not backwards:
        raise UsageError(
            f"{export.place(file)}: its dates have no common order; say the order with --date-order"
        )
    best = min(backwards, key=lambda order: backwards[order])
    if sum(backwards[order] == backwards[best] for order in backwards) > 1:
        names = {"dmy": "day/month", "mdy": "month/day", "ymd": "year/month/day"}
        source.notes.append(
            f"the dates of {file.name} can be read in two ways and were read as {names[best]}/year;"
            " if that is wrong, pass --date-order mdy"
        )
    return best
