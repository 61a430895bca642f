"""Exports of Slack: a folder or zip file with one JSON file for each channel and day."""

from __future__ import annotations

import html
import re
from typing import Any

from mnemoscope._store.errors import DataError
from mnemoscope.importers.json_source import Export, dict_of, elements, opened, text_of
from mnemoscope.importers.source_record import (
    DELETED,
    EMPTY,
    ImportSource,
    LeftOut,
    SourceRecord,
    Yielded,
)
from mnemoscope.importers.source_times import read_time

DAY = r"\d{4}-\d\d-\d\d\.json"
_SAID = ("", "thread_broadcast", "me_message", "bot_message", "file_share", "file_comment")
_LINK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


def read_slack(source: ImportSource) -> Yielded:
    """The messages of all channels; joins, topics and other events are left out."""
    with opened(source.path) as export:
        users = _users(source, export)
        days = export.named(DAY)
        if not days:
            raise DataError("contains no files CHANNEL/YYYY-MM-DD.json", file=source.path)
        for number, file in enumerate(days):
            channel = file.name.split("/")[-2] if "/" in file.name else export.path.name
            for line, message in elements(source, export, file):
                yield _message(message, channel, f"{file.name}, line {line}", users)
            source.share = (number + 1) / len(days)


def _message(
    message: dict[str, Any], channel: str, place: str, users: dict[str, str]
) -> SourceRecord | LeftOut:
    subtype = text_of(message.get("subtype"))
    if subtype == "tombstone":
        return LeftOut(DELETED, place)
    if message.get("type") != "message" or subtype not in _SAID:
        return LeftOut("an event, not a message", place)
    text = _plain(text_of(message.get("text")), users).strip()
    if not text:
        return LeftOut(EMPTY, place)
    profile = dict_of(message.get("user_profile"))
    names = (profile.get("real_name"), message.get("username"), message.get("user"))
    user = text_of(message.get("user"))
    time, thread = text_of(message.get("ts")), text_of(message.get("thread_ts"))
    in_thread = bool(thread and thread != time)
    return SourceRecord(
        place,
        text,
        origin=f"{channel}#{time}#{user}" if time else "",
        at=read_time(time),
        session=channel,
        speaker=users.get(user) or next((text_of(name) for name in names if name), ""),
        metadata={"thread": thread} if in_thread else {},
    )


def _users(source: ImportSource, export: Export) -> dict[str, str]:
    """User id to name."""
    found: dict[str, str] = {}
    for file in export.named(r"(?:org_)?users\.json"):
        for _, user in elements(source, export, file):
            names = (user.get("real_name"), dict_of(user.get("profile")).get("real_name"))
            name = next((text_of(one) for one in (*names, user.get("name")) if one), "")
            found[text_of(user.get("id"))] = name
    return found


def _plain(text: str, users: dict[str, str]) -> str:
    """The text as it is read in Slack: names for ids, labels for links."""

    def named(found: re.Match[str]) -> str:
        target, label = found[1], found[2]
        if target.startswith("@"):
            return f"@{label or users.get(target[1:]) or target[1:]}"
        if target.startswith(("#", "!")):
            return f"{target[0].replace('!', '@')}{label or target[1:]}"
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(_LINK.sub(named, text))
