"""Reads result.json, progress.jsonl and questions.jsonl of Recall Bench, and those of our own runs.

A file says by its content which one it is; `.xz` and `.gz` are unpacked. progress.jsonl has
aggregates only. The lines of questions.jsonl that Recall Bench writes do not name their checkpoint:
it follows from the progress.jsonl in the same folder, by the times of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope._store.jsonl import decode_lines
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.analysis.recall_bench_format import Header
from mnemoscope.analysis.recall_bench_runs import (
    FileKind,
    PrintedCell,
    PrintedCheckpoint,
    RecallBenchRun,
)
from mnemoscope.datasets._io.json_stream import unpacked
from mnemoscope.runner.foreign_fields import decoded, field_of, list_of, object_of, text_of
from mnemoscope.runner.recall_bench_entries import (
    check_answers,
    read_checkpoint,
    read_entry,
    refuse,
    whole,
)
from mnemoscope.types import CATEGORIES

_BOM = b"\xef\xbb\xbf"
_FREE = ("synthesisModel", "embeddingProvider", "embeddingModel")
_ENOUGH = 1 << 16
"""Bytes of the beginning that show which file it is."""


def kind_of(path: Path) -> FileKind | None:
    """Which of Recall Bench's files it is; None if it is none of them."""
    if not path.is_file():
        return None
    try:
        start = next(unpacked(path), b"").removeprefix(_BOM)
        first = msgspec.json.decode(start.split(b"\n", 1)[0])
    except (msgspec.DecodeError, RecursionError):
        # An indented document, or one line that is longer than a block.
        names = (b'"adapterName"', b'"ranges"', b'"personas"')
        return "result" if all(name in start[:_ENOUGH] for name in names) else None
    except (DataError, OSError):
        return None
    if not isinstance(first, dict):
        return None
    if first.get("type") in ("header", "checkpoint", "summary"):
        return "progress"
    if "personas" in first and "ranges" in first:
        return "result"
    return "questions" if "qa" in first and "systemAnswer" in first else None


def read_run(path: Path) -> RecallBenchRun:
    """The content of one of Recall Bench's files."""
    kind = kind_of(path)
    if kind is None:
        raise DataError(
            "is not a result.json, progress.jsonl or questions.jsonl of Recall Bench", file=path
        )
    run = {"result": _read_result, "progress": _read_progress, "questions": _read_questions}[kind](
        path
    )
    if not any(one.questions for one in run.printed):
        raise DataError("contains no judged answers", file=path)
    _check_questions(run.records, path)
    return run


def _read_result(path: Path) -> RecallBenchRun:
    whole_file = object_of(decoded(path, b"".join(unpacked(path))), "the file", path, "$")
    printed: list[PrintedCheckpoint] = []
    records: list[QuestionRecord] = []
    for number, persona in enumerate(
        list_of(field_of(whole_file, "personas", path, "$"), "personas", path, "$")
    ):
        place = f"personas[{number}]"
        one = object_of(persona, "the entry", path, place)
        id = text_of(field_of(one, "personaId", path, place), "personaId", path, place) or ""
        if id in {point.persona for point in printed}:
            refuse(f"personaId is {id!r:.60}, which is there twice", path, place)
        before = sum(point.questions for point in printed)
        ranges = list_of(field_of(one, "rangeResults", path, place), "rangeResults", path, place)
        for index, value in enumerate(ranges):
            where = f"{place}.rangeResults[{index}]"
            point = _checkpoint(value, id, whole_file.get("ranges"), path, where)
            _add(point, printed, path, where)
            results = field_of(value, "questionResults", path, where)
            own = [
                read_entry(
                    entry,
                    path,
                    f"{where}.questionResults[{place_of}]",
                    id,
                    point.label,
                    "compositeScore",
                )
                for place_of, entry in enumerate(list_of(results, "questionResults", path, where))
            ]
            if own:  # a resumed run has aggregates only of what it did before
                check_answers(point, own, path, where)
            records += own
        _check_total(one, sum(p.questions for p in printed) - before, path, place)
    metadata = object_of(whole_file.get("metadata") or {}, "metadata", path, "$")
    _check_total(metadata, sum(point.questions for point in printed), path, "metadata")
    notes = []
    asked = {(record.scenario, record.question.id) for record in records}
    if (pairs := metadata.get("uniqueQAPairCount")) is not None and pairs != len(asked):
        notes.append(f"{len(asked):,} different questions were asked, of {pairs} in the set")
    if metadata.get("reconstructed"):
        notes.append(
            "the file was rebuilt after an interruption, and later checkpoints are missing"
        )
    return RecallBenchRun(
        path, "result", _settings(whole_file, metadata, path), printed, records, notes
    )


def _read_progress(path: Path) -> RecallBenchRun:
    run, _ = _progress(path)
    return run


def _progress(path: Path) -> tuple[RecallBenchRun, dict[tuple[str, str], str]]:
    """The run, and when each checkpoint of a persona was finished."""
    settings: Header | None = None
    printed: list[PrintedCheckpoint] = []
    ended: dict[tuple[str, str], str] = {}
    ranges: Any = None
    total: Mapping[str, Any] = {}
    for number, line in _lines(path):
        place = f"line {number}"
        match line.get("type"):
            case "header":
                own = _settings(line, line, path)
                if settings is not None and own != settings:
                    refuse("another header: these are lines of two different runs", path, place)
                settings, ranges = own, line.get("ranges")
            case "checkpoint":
                id = text_of(field_of(line, "personaId", path, place), "personaId", path, place)
                point = _checkpoint(line, id or "", ranges, path, place)
                _add(point, printed, path, place)
                ended[point.persona, point.label] = str(line.get("timestamp", ""))
            case "summary":
                total = line
            case other:
                refuse(
                    f"type is {other!r:.40}, expected header, checkpoint or summary", path, place
                )
    _check_total(total, sum(point.questions for point in printed), path, "the summary")
    known = settings or Header("")
    return RecallBenchRun(path, "progress", known, printed, []), ended


def _read_questions(path: Path) -> RecallBenchRun:
    lines = list(_lines(path))
    beside = _beside(path)
    progress, ended = _progress(beside) if beside else (None, {})
    if progress is None and any("checkpoint" not in line for _, line in lines):
        raise MissingData(
            f"{path}: the lines do not name their checkpoint, so the progress.jsonl of the same "
            "run is needed in the same folder; or give the result.json of the run"
        )
    records: list[QuestionRecord] = []
    for number, line in lines:
        place = f"line {number}"
        id = text_of(field_of(line, "personaId", path, place), "personaId", path, place) or ""
        label = text_of(line.get("checkpoint"), "checkpoint", path, place)
        label = label or _checkpoint_at(line, id, ended, path, place)
        records.append(read_entry(line, path, place, id, label, "composite"))
    settings, printed = Header(""), _counted(records)
    if progress is not None:
        settings, printed = progress.settings, progress.printed
        for point in printed:
            own = [r for r in records if (r.scenario, r.checkpoint) == (point.persona, point.label)]
            check_answers(point, own, path, f"checkpoint {point.label} of {point.persona}")
    notes = [] if progress else ["the file does not name its judge"]
    return RecallBenchRun(path, "questions", settings, printed, records, notes)


def _beside(path: Path) -> Path | None:
    """The progress.jsonl of the same run: `X.questions.jsonl` belongs to `X.progress.jsonl`."""
    name = path.name.removesuffix(".xz").removesuffix(".gz")
    if "questions" not in name:
        return None
    place = path.with_name(name.replace("questions", "progress"))
    found = (place.with_name(place.name + ending) for ending in ("", ".xz", ".gz"))
    return next((one for one in found if kind_of(one) == "progress"), None)


def _checkpoint_at(
    line: Mapping[str, Any],
    persona: str,
    ended: Mapping[tuple[str, str], str],
    path: Path,
    place: str,
) -> str:
    """The checkpoint that was finished next after the time of the line; times are ISO 8601."""
    at = text_of(field_of(line, "timestamp", path, place), "timestamp", path, place) or ""
    later = [(time, label) for (id, label), time in ended.items() if id == persona and time >= at]
    if not at or not later:
        refuse(f"its time {at!r} is after the last checkpoint of {persona!r:.60}", path, place)
    return min(later)[1]


def _counted(records: Sequence[QuestionRecord]) -> list[PrintedCheckpoint]:
    """The checkpoints of answers that name them: their counts, without printed figures."""
    places = dict.fromkeys((record.scenario, record.checkpoint) for record in records)
    found = []
    for order, (persona, label) in enumerate(places, 1):
        own = [r for r in records if (r.scenario, r.checkpoint) == (persona, label)]
        judged = [r for r in own if r.score]
        number = label.removesuffix("d")
        days = int(number) if number.isascii() and number.isdigit() else order
        cells = {
            name: PrintedCell(None, count)
            for name in CATEGORIES
            if (count := sum(r.question.category == name for r in judged))
        }
        failed = len(own) - len(judged)
        found.append(
            PrintedCheckpoint(
                persona, label, days, days, len(judged), None, None, cells, failed=failed
            )
        )
    return found


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = unpacked(path, lines=True)
    first = next(lines, b"").removeprefix(_BOM)
    for number, value in decode_lines(chain([first], lines), msgspec.json.Decoder(), path):
        yield number, object_of(value, "the line", path, f"line {number}")


def _checkpoint(value: Any, persona: str, ranges: Any, path: Path, place: str) -> PrintedCheckpoint:
    """Recall Bench writes the range as an object, older versions and ours as its label."""
    written = field_of(object_of(value, "the entry", path, place), "range", path, place)
    if isinstance(written, str):
        known = [
            one for one in ranges or () if isinstance(one, dict) and one.get("label") == written
        ]
        if not known:
            refuse(f"range is {written!r:.40}, which is not in ranges", path, place)
        written = known[0]
    span = object_of(written, "range", path, place)
    label = text_of(field_of(span, "label", path, place), "range.label", path, place) or ""
    days = whole(field_of(span, "days", path, place), "range.days", path, place, least=1)
    if not label:
        refuse("range.label is empty", path, place)
    return read_checkpoint(value, path, place, persona, label, days)


def _add(
    point: PrintedCheckpoint, printed: list[PrintedCheckpoint], path: Path, place: str
) -> None:
    if any((one.persona, one.label) == (point.persona, point.label) for one in printed):
        refuse(f"the checkpoint {point.label} of {point.persona} is there twice", path, place)
    printed.append(point)


def _check_total(content: Mapping[str, Any], counted: int, path: Path, place: str) -> None:
    stated = content.get("totalEvalsRun")
    if stated is not None and whole(stated, "totalEvalsRun", path, place) != counted:
        problem = f"totalEvalsRun is {stated}, and the checkpoints have {counted} judged answers"
        refuse(problem, path, place)


def _check_questions(records: Sequence[QuestionRecord], path: Path) -> None:
    """A question is asked once at a checkpoint, and its id always means the same question."""
    seen: set[tuple[str, str, str]] = set()
    known: dict[tuple[str, str], QuestionRecord] = {}
    for record in records:
        place = (record.scenario, record.checkpoint, record.question.id)
        if place in seen:
            problem = f"question {place[2]!r:.80} is there twice at checkpoint {place[1]!r:.40}"
            raise DataError(problem, file=path)
        seen.add(place)
        first = known.setdefault((record.scenario, record.question.id), record)
        if first.question != record.question:
            raise DataError(
                f"question {record.question.id!r:.80} has another text, reference, category or "
                f"days at {record.checkpoint!r:.40} than at {first.checkpoint!r:.40}",
                file=path,
            )


def _settings(named: Mapping[str, Any], about: Mapping[str, Any], path: Path) -> Header:
    known = {**about, "adapterName": named.get("adapterName", "")}
    # A run of ours writes the model's options, too.
    shown = {key: str(known[key]) for key in _FREE if known.get(key) is not None}
    try:
        return msgspec.convert({**known, **shown}, Header)
    except msgspec.ValidationError as error:
        raise DataError(f"the settings of the run: {error}", file=path) from None
