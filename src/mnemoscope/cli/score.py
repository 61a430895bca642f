"""`mnemoscope score`: score a file of rankings, or of answers, without running a system."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import parse_options, print_json, print_table, say, watched
from mnemoscope.reports.tables import numeric
from mnemoscope.types import Scalar

_OF_RANKINGS = ("jsonl", "trec", "pgmnemo")
_OF_ANSWERS = ("jsonl", "mem0", "longmemeval", "recall-bench")


def score(
    file: Path | None = None,
    /,
    *,
    dataset: str,
    answers: Path | None = None,
    judge: list[str] | None = None,
    appellate_judge: str | None = None,
    fields: str = "",
    at: str = "",
    out: Path | None = None,
    format: Literal["jsonl", "trec", "pgmnemo", "mem0", "longmemeval", "recall-bench"]
    | None = None,
    compat: Literal["pgmnemo"] | None = None,
    depth: int = 0,
    data: Path | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    json: bool = False,
    full: bool = False,
    **options: str,
) -> None:
    """Score a file of rankings against a dataset's evidence, or judge a file of answers.

    Formats of rankings: jsonl has one line for each question, {"question": ID, "ranking":
    [MEMORY_ID, …], "scores": […]}, with scores optional; trec is a TREC run file; pgmnemo is its
    raw_retrievals.jsonl.

    Formats of answers: jsonl has one line for each question, {"question_id": ID, "answer": TEXT,
    "verdict": true}, with the verdict optional; mem0 is a mem0-style evaluation; longmemeval is a
    hypothesis file or an evaluation log; recall-bench is its result.json. Default: by the content.
    The answers are judged again, their verdicts are compared with ours, and their headline stands
    beside ours. Judges without a model need no key.

    For example:

        mnemoscope score my_rankings.jsonl --dataset locomo

        mnemoscope score results.test --dataset trec --data qrels.test --format trec --out runs/trec

        mnemoscope score raw_retrievals.jsonl --dataset locomo --format pgmnemo \\
            --compat pgmnemo --out runs/theirs

        mnemoscope score --answers eval_results.json --dataset locomo --judge f1

        mnemoscope score --answers theirs.jsonl --dataset longmemeval --judge exact \\
            --fields question=qid,answer=output.text,verdict=judge.label

    Parameters
    ----------
    file
        The file of rankings.
    dataset
        The dataset whose questions the rankings or answers are for.
    answers
        A file of answers that were given elsewhere, instead of rankings; .xz and .gz are unpacked.
    judge
        The judge of the answers, as in `mnemoscope run`. Repeat it for a panel. Default: that of
        the dataset.
    appellate_judge
        A second judge for answers that the first judge fails.
    fields
        The names of a generic file's fields: question=NAME,answer=NAME,verdict=NAME, also text (of
        the question), group (the conversation) and error. Dots lead into objects.
    at
        The checkpoint of Recall Bench's results, such as 90d. Default: the last.
    out
        The run directory to write. Default: the file's name below `runs`.
    format
        The format of the file. Default: jsonl for rankings, by the content for answers.
    compat
        Score by the rules of that project, to reproduce its published figures.
    depth
        How many hits were asked for, if the file does not state it. Without it, figures beyond the
        end of a list are given as bounds.
    data
        The dataset's file or folder.
    parallelism
        Answers judged at once in each process.
    workers
        The number of processes that judge; 0 means one per core.
    max_cost
        The most that models may cost in US dollars.
    json
        Print the figures as JSON instead of tables.
    full
        Also print the figures by category and the cost.
    options
        Options of the dataset, such as --granularity turn.
    """
    own = parse_options(options, score)
    if answers is not None:
        _only_for_rankings(file, format, compat, depth)
        _score_answers(
            answers,
            *(dataset, judge, appellate_judge, fields, at, out, format, data),
            *(parallelism, workers, max_cost, json, full, own),
        )
        return
    if file is None:
        raise UsageError("name a file of rankings, or a file of answers with --answers FILE")
    if judge or appellate_judge or fields or at:
        raise UsageError("--judge, --appellate-judge, --fields and --at are for --answers FILE")
    if format is not None and format not in _OF_RANKINGS:
        raise UsageError(f"--format {format} is a format of answers: give --answers {file}")
    _score_rankings(file, dataset, out, format, compat, depth, data, json, full, own)


def _only_for_rankings(
    file: Path | None, format: str | None, compat: str | None, depth: int
) -> None:
    if file is not None:
        raise UsageError("score either a file of rankings or --answers FILE, not both")
    if format is not None and format not in _OF_ANSWERS:
        raise UsageError(f"--format {format} is a format of rankings")
    if compat or depth:
        raise UsageError("--compat and --depth are for rankings")


def _score_answers(
    file: Path,
    dataset: str,
    judge: list[str] | None,
    appellate_judge: str | None,
    fields: str,
    at: str,
    out: Path | None,
    format: str | None,
    data: Path | None,
    parallelism: int,
    workers: int,
    max_cost: float | None,
    json: bool,
    full: bool,
    options: dict[str, Scalar],
) -> None:
    from mnemoscope.reports import foreign_tables, run_tables
    from mnemoscope.reports.closing_sentences import closing_sentences
    from mnemoscope.reports.render_terminal import render
    from mnemoscope.reports.run_view import RunView

    with watched() as progress:
        found = api.score_answers(
            file,
            dataset=dataset,
            judge=judge,
            appellate_judge=appellate_judge,
            out=out,
            format=format,  # type: ignore[arg-type]
            fields=_mapping(fields),
            at=at,
            data=data,
            parallelism=parallelism,
            workers=workers,
            max_cost=max_cost,
            progress=progress,
            **options,
        )
    if json:
        left_out = {"verdicts", "right"}
        if found.answers and "withheld" in found.answers:
            # Our share of right answers follows from each of these.
            left_out |= {"ours_here", "agreement", "unanimous"}
        imported = {key: value for key, value in found.imported.items() if key not in left_out}
        print_json({"imported": imported, "answers": found.answers})
        return
    stdout.print(run_tables.summary([RunView.of(found.directory)], full=full))
    stdout.print(render(foreign_tables.report_sections(found.imported, found.answers)))
    say(stdout, f"report: {found.path}/report.html")
    stdout.print(render(closing_sentences([found.directory])))


def _mapping(fields: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in filter(None, fields.split(",")):
        name, equals, path = pair.partition("=")
        if not equals or not path.strip():
            raise UsageError(f"--fields: cannot read {pair!r}; write question=NAME,answer=NAME")
        found[name.strip()] = path.strip()
    return found


def _score_rankings(
    file: Path,
    dataset: str,
    out: Path | None,
    format: str | None,
    compat: Literal["pgmnemo"] | None,
    depth: int,
    data: Path | None,
    json: bool,
    full: bool,
    options: dict[str, Scalar],
) -> None:
    from mnemoscope.reports import run_tables
    from mnemoscope.reports.closing_sentences import closing_sentences
    from mnemoscope.reports.render_terminal import render
    from mnemoscope.reports.run_view import RunView

    found = api.score(
        file,
        dataset=dataset,
        out=out,
        format=format or "jsonl",  # type: ignore[arg-type]
        compat=compat,
        depth=depth,
        data=data,
        **options,
    )
    if json:
        metrics = found.directory.read_json("metrics.json")
        print_json({**metrics, "rule_changes": found.rule_changes})
        return
    stdout.print(run_tables.summary([RunView.of(found.directory)], full=full))
    if found.rule_changes:
        print_table(
            ("metric", *map(numeric, ("pgmnemo's rules", "sound rules", "difference"))),
            [
                (name, f"{by.compat:.4f}", f"{by.sound:.4f}", f"{by.difference:+.4f}")
                for name, by in found.rule_changes.items()
            ],
            title="Effect of the scoring rules: pgmnemo's rules against sound rules",
        )
        say(stdout, found.sound_rules)
    say(stdout, f"report: {found.path}/report.html")
    stdout.print(render(closing_sentences([found.directory])))
