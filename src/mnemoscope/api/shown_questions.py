"""Look at single questions of a run: one with all that is known, or those that were missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory, find_runs, is_run
from mnemoscope._store.suggest import did_you_mean
from mnemoscope.api.arguments import RunLike, Where, existing, optional_path
from mnemoscope.results import MissedQuestions, RunResult, ShownQuestion

if TYPE_CHECKING:
    from mnemoscope.analysis.question_details import DatasetTexts, QuestionDetails

_NAMED = 8
"""Ids that an error lists."""


def show(
    run: RunLike, question: str, *, checkpoint: str = "", data: Where | None = None
) -> ShownQuestion:
    """Read one question of a finished run: evidence, hits, answer, verdicts.

    `question` is its id, or a part that only its id has. A run with checkpoints asks a question
    several times: `checkpoint` chooses, and the last one is the default. The texts of memories
    come from the dataset at `data`, else from the run's report.html, where long ones are cut.
    """
    from mnemoscope.analysis.read_questions import question_details

    directory = one_run(run)
    manifest = directory.manifest()
    id = matching_id(question, _ids(directory))
    texts = _texts(directory, data)
    found = question_details(directory, texts, only=id).questions
    details = _at(found, id, checkpoint)
    return ShownQuestion(
        details,
        directory.label,
        has_texts=texts is not None,
        category_names=manifest.category_names,
    )


def show_failed(run: RunLike, *, category: str = "", k: int = 10) -> MissedQuestions:
    """List the questions that a finished run missed.

    A question is missed if recalling or answering failed, if its answer was judged wrong, or,
    without a verdict, if no evidence is among the first `k` hits.
    """
    if k < 1:
        raise UsageError(f"--k {k}: must be at least 1")
    directory = one_run(run)
    names = directory.manifest().category_names
    result = RunResult(directory.path)
    rows, sheet = result.question_rows(k=k), result.answers
    if category:
        known = sorted({row.category for row in rows})
        keys = {category, *(key for key, name in names.items() if name == category)}
        if not keys & set(known):
            near = did_you_mean(category, [*known, *names.values()])
            shown = ", ".join(names.get(key) or key for key in known)
            raise UsageError(f"no category {category!r}; {near}this run has {shown}")
        rows = [row for row in rows if row.category in keys]
    missed = [row for row in rows if row.failure]
    return MissedQuestions(
        missed,
        directory.label,
        asked=len(rows),
        category_names=names,
        withheld=sheet.get("withheld", "") if sheet else "",
    )


def one_run(run: RunLike) -> RunDirectory:
    """The finished run at a path; an error names the runs of a folder that has several."""
    path = existing(run)
    if not is_run(path):
        found = find_runs(path)
        if len(found) > 1:
            listed = ", ".join(str(one.path) for one in found[:_NAMED])
            raise UsageError(f"{path} contains {len(found)} runs; name one of them: {listed}")
        path = found[0].path
    directory = RunDirectory(path)
    if (state := directory.manifest().state) != "complete":
        raise UsageError(f"{path} is {state}; repeat its command to finish it")
    return directory


def matching_id(given: str, ids: list[str]) -> str:
    """The id that is given, or the only one that contains it; upper and lower case are the same."""
    if given in ids:
        return given
    part = given.casefold()
    found = [id for id in ids if part in id.casefold()] if part else []
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        raise UsageError(
            f"{len(found):,} questions have {given!r} in their id: "
            f"{', '.join(found[:_NAMED])}{more}; give a longer part"
        )
    near = did_you_mean(given, ids)
    raise UsageError(
        f"no question {given!r} in this run; {near}it has {len(ids):,} questions such as "
        f"{', '.join(ids[:3])}; --failed lists those that were missed"
    )


def _ids(run: RunDirectory) -> list[str]:
    from mnemoscope._store.jsonl import read_records

    lines = read_records(run.path / "questions.jsonl", dict)
    return list(dict.fromkeys(str(line.get("qa", line)["id"]) for line in lines))


def _at(found: tuple[QuestionDetails, ...], id: str, checkpoint: str) -> QuestionDetails:
    if not found:
        raise UsageError(f"question {id} was not asked")
    if not checkpoint:
        return found[-1]
    for one in found:
        if one.checkpoint == checkpoint:
            return one
    labels = list(dict.fromkeys(one.checkpoint for one in found))
    if labels == [""]:
        raise UsageError("this run has no checkpoints; omit --checkpoint")
    near = did_you_mean(checkpoint, labels)
    raise UsageError(
        f"question {id} is not asked at checkpoint {checkpoint!r}; {near}it is asked at "
        f"{', '.join(labels[:_NAMED])}{' …' if len(labels) > _NAMED else ''}"
    )


def _texts(run: RunDirectory, data: Where | None) -> DatasetTexts | None:
    """The texts of the dataset, else those of the run's page; None if there are neither."""
    from mnemoscope.analysis.read_questions import named_memories
    from mnemoscope.reports.page_data import kept_texts
    from mnemoscope.runner.dataset_texts import dataset_of, dataset_texts

    manifest = run.manifest()
    dataset = dataset_of(manifest, optional_path(data))
    if dataset is None:
        return kept_texts(run)
    wanted = named_memories(run)
    return dataset_texts(dataset.scenarios(), wanted, private=manifest.private)
