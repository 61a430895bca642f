"""Draft questions about your own memories, and review the drafts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from mnemoscope.api.arguments import Where
from mnemoscope.datasets.imported_folder import import_record
from mnemoscope.datasets.strata import STRATA
from mnemoscope.drafting.draft_questions import (
    PER_STRATUM,
    SEED,
    DraftedQuestions,
)
from mnemoscope.drafting.draft_questions import draft_questions as draft_in_folder
from mnemoscope.drafting.review_session import ReviewSession


def draft_questions(
    folder: Where,
    *,
    per_stratum: int = PER_STRATUM,
    seed: int = SEED,
    model: str = "",
    strata: Sequence[str] | None = None,
) -> DraftedQuestions:
    """Draft questions about the memories in a folder, and write queries.jsonl and qrels.jsonl.

    Every question obeys the rules of its stratum; what broke one is counted in `dropped`. Without
    a model the questions come from templates, offline. The same arguments give the same questions.
    """
    from mnemoscope.runner.private_runs import no_texts_outside

    record = import_record(Path(folder))
    # Replies of a model and vectors of words would be cached outside of the folder.
    with no_texts_outside() if record is not None and record.private else nullcontext():
        return draft_in_folder(
            Path(folder),
            per_stratum=per_stratum,
            seed=seed,
            model=model,
            strata=STRATA if strata is None else strata,
        )


def review_questions(folder: Where) -> ReviewSession:
    """The drafted questions that wait for a person: `waiting`, `accept`, `edit`, `reject`."""
    return ReviewSession(Path(folder))
