"""The parts of a run that only datasets with checkpoints, such as personas, need.

Their files are checked before the first question, they have their own default reader and judge, and
a run can be tried at the first checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope.datasets._io.locate import locate
from mnemoscope.datasets.persona_folder import problems
from mnemoscope.datasets.personas import Personas
from mnemoscope.runner.answer_setup import NONE
from mnemoscope.types import GROUP_CATEGORIES, Scalar

TIMEOUT = 30.0
"""Seconds after which a recall is a timeout, if no limit is given."""
_log = logging.getLogger(__name__)


def check_files(data: Path | None, options: Mapping[str, Scalar]) -> None:
    """Read every file once, so that an error is found before the first question."""
    chosen = (str(options.get(name, "")) for name in ("personas", "arcs"))
    found = problems(locate(Personas.info, data), *chosen)
    for problem in found[:-1]:
        _log.error("error: %s", problem)
    if found:
        raise found[-1]


def reader_and_judges(
    history: Personas, reader: str | None, judges: Sequence[str]
) -> tuple[str, list[str]]:
    """The reader and the judges, with defaults that need no model."""
    if not history.ranges:
        if {reader, *judges} - {None, NONE}:
            raise UsageError(
                "--ranges none has no checkpoint at which answers are judged; use --ranges full"
            )
        return NONE, [NONE]
    if not judges:
        judges = ["ledger" if history.has_ledger and reader != NONE else NONE]
        if not history.has_ledger and reader is None:
            _log.warning(
                "no ledger beside the questions: recall is measured, answers are not judged"
            )
    if reader is None:
        reader = NONE if list(judges) == [NONE] else "extractive"
    if any(judge.split(",")[0] == "ledger" for judge in judges) and not history.has_ledger:
        without = [folder.id for folder in history.folders if not folder.ledger.is_file()]
        raise MissingData(
            f"--judge ledger: {', '.join(without)} has no ledger.jsonl beside its questions; "
            "only simulated personas have one. Choose another judge, or --judge none"
        )
    return reader, list(judges)


def report_findings(history: Personas) -> None:
    """Print what the loader found in the data, before the first question."""
    for _ in history.scenarios():
        pass
    left = [f"{n:,} {c}" for c in GROUP_CATEGORIES if (n := history.counts().get(c, 0))]
    if left and not history.groups:
        _log.warning("left out without --groups-enabled: %s questions", " and ".join(left))
    if history.ranges and not history.counts()["asked at checkpoints"]:
        raise UsageError(
            f"no question can be asked by day {history.ranges[-1].days}; choose later --ranges"
        )
    for kind, number in history.findings.counts.items():
        example = history.findings.examples[kind][0]
        _log.warning("note: %s × %s, such as %s", f"{number:,}", kind, example)


def first_checkpoint(history: Personas) -> dict[str, Scalar]:
    """The options that leave only the first checkpoint of the first persona."""
    first = [f"{one.label}:{one.days}" for one in history.ranges[:1]]
    return {**history.options, "personas": history.folders[0].id, "ranges": ",".join(first)}
