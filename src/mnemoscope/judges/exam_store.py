"""Keeps exam records by judge and benchmark, and refuses records that are not what was written.

A record's sha256 stands in the user's data folder, apart from the record. The seed of an exam is
made from a secret of the installation, so that no judge can be written for its probes, an
interrupted exam continues with the same probes, and a second exam is not a second chance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.jsonl import encode_json, write_atomically
from mnemoscope._store.private_files import make_private_folder, write_private
from mnemoscope._store.user_data import user_data_folder
from mnemoscope.judges.drawn_exam import RULES
from mnemoscope.judges.exam_record import VERSION, ExamRecord
from mnemoscope.models.cache import default_cache_dir

_TIMEOUT = re.compile(r"([?&])timeout=[^&]*(&|$)")


class KeptExam(NamedTuple):
    """A kept record, or why there is none that counts."""

    record: ExamRecord | None
    problem: str = ""


def exam_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's identity without time limits, which change no verdict."""
    return {key: _without_timeout(value) for key, value in identity.items() if key != "timeout"}


def _without_timeout(value: Any) -> Any:
    if isinstance(value, Mapping):
        return exam_identity(value)
    if isinstance(value, str) and "timeout=" in value:
        kept = _TIMEOUT.sub(lambda found: found[1] if found[2] else "", value)
        return kept.rstrip("?&")
    return value


def installation_seed(benchmark: str, data: Sequence[str]) -> str:
    """The seed of exams on this benchmark: the same here, unknown elsewhere."""
    place = user_data_folder() / "exam-secret"
    try:
        secret = place.read_text("ascii").strip()
    except OSError:
        make_private_folder(place.parent)
        secret = token_hex(16)
        with write_private(place) as file:
            file.write(secret.encode())
    return sha256("\0".join((secret, benchmark, *sorted(data))).encode()).hexdigest()[:16]


def keep(record: ExamRecord) -> Path:
    """Store the record and vouch for it; return its file."""
    place = _place(record.judge, record.benchmark, record.data)
    content = encode_json(record)
    make_private_folder(place.parent)
    write_atomically(place, content)
    make_private_folder(user_data_folder())
    with write_private(_vouched(), append=True) as file:
        line = {"exam": place.name, "sha256": sha256(content).hexdigest()}
        file.write(msgspec.json.encode(line) + b"\n")
    return place


def kept(identity: Mapping[str, Any], benchmark: str, data: Sequence[str]) -> KeptExam:
    """The record of this judge on these data, if it is whole and as it was written."""
    judge = exam_identity(identity)
    place = _place(judge, benchmark, data)
    try:
        content = place.read_bytes()
    except OSError:
        return KeptExam(None)
    if sha256(content).hexdigest() != _last_hash(place.name):
        return KeptExam(None, f"the exam in {place} was edited or copied and does not count")
    try:
        record = msgspec.json.decode(content, type=ExamRecord)
    except (ValueError, RecursionError):
        return KeptExam(None)  # of another version
    if record.version != VERSION or record.rules != RULES:
        return KeptExam(None)
    if fingerprint({"judge": record.judge}) != fingerprint({"judge": judge}):
        return KeptExam(None, f"the exam in {place} is that of another judge")
    if (record.benchmark, sorted(record.data)) != (benchmark, sorted(data)):
        return KeptExam(None, f"the exam in {place} was drawn from another benchmark")
    return KeptExam(record)


def _last_hash(name: str) -> str:
    try:
        lines = _vouched().read_bytes().splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        try:
            found = msgspec.json.decode(line, type=dict[str, str])
        except (ValueError, RecursionError):
            continue
        if found.get("exam") == name:
            return found.get("sha256", "")
    return ""


def _vouched() -> Path:
    return user_data_folder() / "exams.jsonl"


def _place(judge: Mapping[str, Any], benchmark: str, data: Sequence[str]) -> Path:
    key = fingerprint({"judge": judge, "benchmark": benchmark, "data": sorted(data)})
    return default_cache_dir() / "exams" / f"{key}.json"
