"""`mnemoscope judges`: list, check and examine the judges of answers."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from cyclopts import App

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.registry import describe_options
from mnemoscope._store.spec import Spec
from mnemoscope.cli.console import (
    err,
    name_cell,
    out,
    parse_options,
    print_json,
    print_problems,
    print_table,
    progress_bar,
    say,
)
from mnemoscope.reports.tables import Cell, numeric

if TYPE_CHECKING:
    from rich.progress import Progress

    from mnemoscope.judges.exam import ExamResult, Share

_SHOWN = 5
_REASON = 120
app = App(name="judges", help="List, check and examine the judges of answers.")


@app.command(name="list")
def list_judges(*, json: bool = False) -> None:
    """List the judges with their options.

    For example:

        mnemoscope judges list

    Parameters
    ----------
    json
        Print JSON instead of a table.
    """
    from mnemoscope.judges import JUDGES

    rows = []
    for name in JUDGES.names():
        summary, options = JUDGES.summary(name), {}
        try:
            options = describe_options(JUDGES.get(name))
        except MnemoscopeError as error:
            summary = str(error)
        rows.append((name, summary, options))
    if json:
        print_json([{"name": n, "summary": s, "options": o} for n, s, o in rows])
        return
    print_table(
        ("judge", "description", "options, default first"),
        [
            (name_cell(name), summary, ", ".join(f"{key}={value}" for key, value in own.items()))
            for name, summary, own in rows
        ],
    )
    say(out, "Your own: --judge package.module:Name, or the entry-point group mnemoscope.judges")


@app.command
def check(spec: str, /) -> int:
    """Check a judge that uses no model: its scale, and whether its grades follow the reference.

    The exit code is 0 if the judge passes and 1 if not. `exam` measures how well a judge judges.

    For example:

        mnemoscope judges check exact

        mnemoscope judges check my_judge:MyJudge

    Parameters
    ----------
    spec
        The name of a judge with its options, or your own `module:Name`.
    """
    from mnemoscope._store.registry import bind_arguments
    from mnemoscope.judges import JUDGES
    from mnemoscope.judges.judge_check import check_judge

    parsed = Spec.parse(spec)
    factory = JUDGES.get(parsed.name)
    return print_problems(spec, check_judge(factory(**bind_arguments(factory, parsed))))


@app.command
def exam(
    spec: str,
    /,
    *,
    benchmark: str = "",
    data: Path | None = None,
    probes: Path | None = None,
    budget: str | None = None,
    seed: str | None = None,
    fresh: bool = False,
    parallelism: int = 8,
    max_cost: float | None = None,
    json: bool = False,
    **options: str,
) -> int:
    """Examine a judge with answers that are known to be right or wrong.

    With --benchmark the exam is drawn from the benchmark's own questions and references, up to 300
    answers of each kind. The judge passes if the upper ends of its error rates are below the
    limits, over all and for each kind. The result is kept by judge and data; later runs record
    it and correct the accuracy by it. Without --benchmark and --probes the judge takes a smoke test
    of 137 fixed, public answers, which entitles to nothing. The exit code is 0 if the judge passed.

    For example:

        mnemoscope judges exam openai:gpt-4o-mini --benchmark locomo

        mnemoscope judges exam openai:gpt-4o --benchmark longmemeval --budget 600

        mnemoscope judges exam openai:gpt-4o --benchmark locomo --budget '$1.50'

        mnemoscope judges exam f1 --probes labelled.jsonl

        mnemoscope judges exam rubric,model=llama3@http://localhost:11434/v1 --parallelism 2

    Parameters
    ----------
    spec
        The judge, as in --judge. A model alone means the benchmark's judge for models.
    benchmark
        The benchmark to draw the exam from.
    data
        The dataset's file or folder, if it is not where `mnemoscope datasets fetch` puts it.
    probes
        A JSONL file of your own labelled answers: question, reference, answer, correct, and
        optionally kind, category, expects, id.
    budget
        The most answers to judge (600), or dollars to spend ($1.50). Fewer answers are drawn evenly
        over the kinds; the intervals get wider.
    seed
        Draw with this seed instead of the installation's secret one, to repeat another exam. Such
        an exam is not kept: its answers may have been known beforehand.
    fresh
        Judge again even if a result is kept.
    parallelism
        The number of exam answers in flight at once.
    max_cost
        The most that the exam may cost in US dollars. It stops before a request that could exceed
        the limit; with a higher limit it continues and reuses the replies paid for.
    json
        Print JSON instead of a table.
    options
        Options of the dataset, such as --variant oracle.
    """
    asked = parse_options(options, exam)
    if not benchmark and probes is None:
        return _smoke_test(spec, parallelism, max_cost, json)
    from mnemoscope.api.examine import examine
    from mnemoscope.cli.show_exam import as_json, print_record

    count, dollars = _budget(budget)
    bar: Progress | None = None
    with ExitStack() as stack:

        def begin(number: int) -> None:
            nonlocal bar
            bar = stack.enter_context(progress_bar(f"{number} exam answers", number))

        def advance() -> None:
            assert bar is not None
            bar.advance(bar.task_ids[0])

        found = examine(
            spec,
            benchmark=benchmark,
            data=data,
            options=asked,
            probes=probes,
            budget=count,
            dollars=dollars,
            seed=seed,
            fresh=fresh,
            parallelism=parallelism,
            max_cost=max_cost,
            begin=begin,
            tell=advance,
        )
    if json:
        print_json(as_json(spec, found))
    else:
        print_record(spec, found)
    return 0 if found.record.passed else 1


@app.command
def sample(run: Path, /, *, n: int = 100) -> None:
    """Print a random sample of a run's judged answers, to be labelled by hand.

    Each line is JSON; set `correct` to true or false. The sample depends on the run alone.

    For example:

        mnemoscope judges sample runs/answers/hybrid --n 150

    Parameters
    ----------
    run
        A run directory with judged answers.
    n
        How many answers, at least 30.
    """
    from mnemoscope.analysis.hand_labels import label_sample

    for line in label_sample(run, n):
        sys.stdout.write(msgspec.json.encode(line).decode() + "\n")


@app.command
def correct(run: Path, /, *, labels: Path, json: bool = False) -> None:
    """Correct the accuracy of a run by labels of a random sample of its answers.

    All verdicts of the judge are used, and the labels correct them (prediction-powered inference).
    The judge needs no exam for that.

    For example:

        mnemoscope judges correct runs/answers/hybrid --labels labels.jsonl

    Parameters
    ----------
    run
        A run directory with judged answers.
    labels
        The labelled lines of `mnemoscope judges sample`.
    json
        Print JSON instead of a sentence.
    """
    from mnemoscope.analysis.hand_labels import correct_by_labels

    found = correct_by_labels(run, labels)
    if json:
        print_json(found._asdict())
        return
    say(
        out,
        f"accuracy {found.accuracy:.3f} [{found.low:.3f}, {found.high:.3f}] on {found.n:,} "
        f"questions with an answer, from all verdicts and {found.labels:,} labels",
    )


def _budget(text: str | None) -> tuple[float | None, float | None]:
    """Probes, or dollars."""
    if text is None:
        return None, None
    try:
        number = float(text.removeprefix("$"))
    except ValueError:
        number = float("nan")
    if not number > 0 or number == float("inf"):
        raise UsageError(f"--budget {text}: write a number of answers (600) or dollars ($1.50)")
    return (None, number) if text.startswith("$") else (number, None)


def _smoke_test(spec: str, parallelism: int, max_cost: float | None, json: bool) -> int:
    from mnemoscope.judges import exam as exams
    from mnemoscope.runner.pipeline import plan_judge

    plan = plan_judge(Spec.parse(spec))
    probes = exams.load_probes()
    with progress_bar(f"{len(probes)} answers of the smoke test", len(probes)) as bar:

        def advance() -> None:
            bar.advance(bar.task_ids[0])
            bar.refresh()

        result = exams.take(
            plan.build(), probes, parallelism=parallelism, max_cost=max_cost, tell=advance
        )
    if json:
        content = msgspec.to_builtins(result)
        for name in ("false_accept", "false_reject", "unjudged"):
            content[name]["ci95"] = list(_interval(getattr(result, name)))
        print_json({"judge": str(plan.spec), "smoke_test": True, **content})
    else:
        _print(plan.spec, result)
        say(
            err,
            "This smoke test has fixed, public answers. Only an exam drawn from a benchmark "
            "entitles to a headline: mnemoscope judges exam SPEC --benchmark NAME",
        )
    return 0 if result.passed else 1


@app.command
def rules(
    run: Path,
    /,
    *,
    judge: list[str],
    out: Path | None = None,
    data: Path | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    json: bool = False,
) -> None:
    """Show which judging rule moves the figure by how much, on the same saved answers.

    One judge `longmemeval,…` is asked under the official rules, then with each rule changed alone,
    then with all of them. Several judges are compared as they are; the first is the base.

    For example:

        mnemoscope judges rules runs/answers/hybrid --judge longmemeval,model=openai:gpt-4o

        mnemoscope judges rules runs/theirs --judge binary,model=openai:gpt-4o-mini \\
            --judge binary,model=openai:gpt-4o-mini,prompt=official.txt

    Parameters
    ----------
    run
        A run directory with answers, also one of `mnemoscope score --answers`.
    judge
        The judge, as in --judge of `mnemoscope run`. Repeat it to compare several.
    out
        The folder of the runs that are made. Default: beside the run, with `-rules`.
    data
        The dataset's file or folder, if it is not where `mnemoscope run` looks for it.
    parallelism
        Answers judged at once in each process.
    workers
        The number of processes; 0 means one per core.
    max_cost
        The most that models may cost in US dollars over all sets of rules.
    json
        Print JSON instead of a table.
    """
    from mnemoscope import api
    from mnemoscope.cli.console import watched
    from mnemoscope.reports.render_terminal import table
    from mnemoscope.reports.rule_tables import rule_notes, rule_table

    with watched() as progress:
        found = api.judging_rules(
            run,
            judge=judge,
            out=out,
            data=data,
            parallelism=parallelism,
            workers=workers,
            max_cost=max_cost,
            progress=progress,
        )
    if json:
        print_json(msgspec.to_builtins(found))
        return
    from mnemoscope.cli.console import out as stdout

    stdout.print(table(rule_table(found)))
    for note in rule_notes(found):
        say(stdout, note)
    told = "the mean of the verdicts as the judge gave them, to compare rules; not an accuracy"
    say(stdout, f"figure: {told}")


def _interval(share: Share) -> tuple[float, float]:
    from mnemoscope.stats.intervals import wilson

    return wilson(share.count, share.of)


def _print(spec: Spec, result: ExamResult) -> None:
    titles = ("questions", "wrong, accepted", "right, rejected", "unjudged")
    rows: list[list[Cell | str]] = []
    for name, kind in result.kinds.items():
        counts = (kind.false_accepts, kind.false_rejects, kind.unjudged)
        cells = (Cell(str(count), "bold red") if count else Cell("·", "dim") for count in counts)
        rows.append([Cell(name, "bold red" if kind.blind else ""), str(kind.probes), *cells])
    shares = (result.false_accept, result.false_reject, result.unjudged)
    total = sum(kind.probes for kind in result.kinds.values())
    rows.append(["all", str(total), *(str(share.count) for share in shares)])
    print_table(("kind of answer", *map(numeric, titles)), rows, last_apart=True)
    for label, name in (
        ("accepts wrong answers", "false_accept"),
        ("rejects right answers", "false_reject"),
        ("gives no verdict", "unjudged"),
    ):
        share, limit = getattr(result, name), result.limits[name]
        low, high = _interval(share)
        say(
            out,
            f"{label:22} {share.rate:6.1%}  [{low:.1%}, {high:.1%}]  {share.count} of {share.of}, "
            f"at most {limit:.0%} allowed",
        )
    blind = sum(kind.blind for kind in result.kinds.values())
    say(
        out,
        f"in {blind} of {len(result.kinds)} kinds of answers it errs on more than "
        f"{result.limits['of_one_kind']:.0%} of them; none is allowed",
    )
    for mistake in result.mistakes[:_SHOWN]:
        because = " ".join(mistake.reasoning.split())[:_REASON]
        say(out, f"  {mistake.what} of {mistake.probe}{because and f': {because}'}")
    if (more := len(result.mistakes) - _SHOWN) > 0:
        say(out, f"  and {more} more mistakes; --json lists all")
    if result.usage is not None:
        usage = result.usage
        tokens = usage.input_tokens + usage.output_tokens
        say(err, f"{usage.requests} requests, {tokens:,} tokens, ${usage.paid:.4f} paid")
    if result.passed:
        say(out, f"{spec} passed the smoke test.", before="[bold green]PASSED:[/] ")
    else:
        say(out, f"{spec}: {', and '.join(result.reasons)}.", before="[bold red]FAILED:[/] ")
