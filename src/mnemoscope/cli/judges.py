"""`mnemoscope judges`: list, check and examine the judges of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from cyclopts import App

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.registry import describe_options
from mnemoscope._store.spec import Spec
from mnemoscope.cli.console import (
    err,
    name_cell,
    out,
    print_json,
    print_problems,
    print_table,
    progress_bar,
    say,
)
from mnemoscope.reports.tables import Cell, numeric

if TYPE_CHECKING:
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
    spec: str, /, *, parallelism: int = 8, max_cost: float | None = None, json: bool = False
) -> int:
    """Examine a judge with answers that are known to be right or wrong.

    The result is stored under the judge's identity: model, settings and prompt. Later runs record
    it. The exit code is 0 if the judge passed and 1 if it failed.

    For example:

        mnemoscope judges exam openai:gpt-4o-mini

        mnemoscope judges exam rubric,model=llama3@http://localhost:11434/v1 --parallelism 2

        mnemoscope judges exam openai:gpt-4o --max-cost 0.50

    Parameters
    ----------
    spec
        The judge, as in --judge. A model alone means the binary judge with that model.
    parallelism
        The number of exam questions in flight at once.
    max_cost
        The most that the exam may cost in US dollars. It stops before a request that could exceed
        the limit; with a higher limit it continues and reuses the replies paid for.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.judges import exam as exams
    from mnemoscope.runner.pipeline import plan_judge

    plan = plan_judge(Spec.parse(spec))
    probes = exams.load_probes()
    with progress_bar(f"{len(probes)} exam questions", len(probes)) as bar:

        def advance() -> None:
            bar.advance(bar.task_ids[0])
            bar.refresh()

        result = exams.take(
            plan.build(), probes, parallelism=parallelism, max_cost=max_cost, tell=advance
        )
    place = exams.record(result, plan.identity)
    if json:
        content = msgspec.to_builtins(result)
        for name in ("false_accept", "false_reject", "unjudged"):
            content[name]["ci95"] = list(_interval(getattr(result, name)))
        print_json({"judge": str(plan.spec), "file": str(place), **content})
    else:
        _print(plan.spec, result)
        say(err, f"stored in {place}")
    return 0 if result.passed else 1


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
        say(out, f"{spec} passed the exam.", before="[bold green]PASSED:[/] ")
    else:
        say(out, f"{spec}: {', and '.join(result.reasons)}.", before="[bold red]FAILED:[/] ")
