"""Exams that a judge passed or failed, for tests of what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mnemoscope.judges import exam_store
from mnemoscope.judges.drawn_exam import RULES
from mnemoscope.judges.exam_record import ExamRecord, ProbeVerdict
from mnemoscope.judges.exam_store import KeptExam

KINDS = {"right-same-words": True, "vaguer": False}


def exam_record(
    benchmark: str = "locomo",
    data: Sequence[str] = (),
    *,
    false_accepts: int = 0,
    false_rejects: int = 0,
    of: int = 300,
    **more: Any,
) -> ExamRecord:
    """A record of one right and one wrong kind with so many errors."""
    verdicts = []
    for kind, acceptable in KINDS.items():
        errors = false_rejects if acceptable else false_accepts
        for number in range(of):
            accepted = acceptable != (number < errors)
            id = f"{kind}{number}"
            verdicts.append(ProbeVerdict(id, kind, acceptable, "text, plain", 1.0, accepted))
    about: dict[str, Any] = {"rules": RULES, "seed": "s", "seed_given": False}
    return ExamRecord(
        **about | more,
        benchmark=benchmark,
        data=tuple(data),
        probes_sha256="p",
        verdicts=tuple(verdicts),
        held=dict.fromkeys(KINDS, of),
        shares={"text, plain": 1.0},
    )


def exam_summary(
    benchmark: str = "locomo", data: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    return exam_record(benchmark, data, **more).summary()


def every_judge_passes(patch: pytest.MonkeyPatch, **more: Any) -> None:
    """Every judge has a kept exam on every benchmark."""

    def kept(identity: Mapping[str, Any], benchmark: str, data: Sequence[str]) -> KeptExam:
        return KeptExam(exam_record(benchmark, data, **more))

    patch.setattr(exam_store, "kept", kept)
