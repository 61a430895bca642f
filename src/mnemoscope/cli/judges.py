"""`mnemoscope judges`: who can judge answers, and how well they do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from cyclopts import App
from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.registry import describe_options
from mnemoscope._store.spec import Spec
from mnemoscope.cli.console import err, out, print_json, print_problems, progress_bar, say

if TYPE_CHECKING:
    from mnemoscope.judges.exam import ExamResult, Share

_SHOWN = 5
_REASON = 120
app = App(name="judges", help="Who can judge answers, and how well they do it.")


@app.command(name="list")
def list_judges(*, json: bool = False) -> None:
    """List the judges known by name, with their options.

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
    table = Table("judge", "what it does", "options, default first", box=box.SIMPLE_HEAD)
    for name, summary, options in rows:
        listed = ", ".join(f"{key}={value}" for key, value in options.items())
        table.add_row(Text(name, "bold cyan"), Text(summary), Text(listed))
    out.print(table)
    say(out, "Your own: --judge package.module:Name, or the entry-point group mnemoscope.judges")


@app.command
def check(spec: str, /) -> int:
    """Check a judge that asks no model: its scale, and whether its grades follow the reference.

    The exit code is 0 if it keeps its promises and 1 if not. `exam` says how well a judge judges.

    For example:

        mnemoscope judges check exact

        mnemoscope judges check my_judge:MyJudge

    Parameters
    ----------
    spec
        A judge's name with its options, or your own `module:Name`.
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
    """Put a judge to the test: answers that are known to be right or wrong.

    The result is kept, and a run finds it by the judge's identity: model, settings and prompt.
    The exit code is 0 if the judge passed and 1 if it failed.

    For example:

        mnemoscope judges exam openai:gpt-4o-mini

        mnemoscope judges exam rubric,model=llama3@http://localhost:11434/v1 --parallelism 2

        mnemoscope judges exam openai:gpt-4o --max-cost 0.50

    Parameters
    ----------
    spec
        The judge, as in --judge; a model alone stands for the binary judge with it.
    parallelism
        How many probes are put to it at the same time.
    max_cost
        What it may cost in US dollars; where the next request could cost more than what is left,
        the exam stops, and a higher ceiling goes on with the replies that were paid for.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.judges import exam as exams
    from mnemoscope.runner.pipeline import plan_judge

    plan = plan_judge(Spec.parse(spec))
    probes = exams.load_probes()
    with progress_bar(f"{len(probes)} probes", len(probes)) as bar:

        def tell() -> None:
            bar.advance(bar.task_ids[0])
            bar.refresh()

        result = exams.take(
            plan.build(), probes, parallelism=parallelism, max_cost=max_cost, tell=tell
        )
    place = exams.record(result, plan.identity)
    if json:
        content = msgspec.to_builtins(result)
        for name in ("false_accept", "false_reject", "unjudged"):
            content[name]["ci95"] = list(_interval(getattr(result, name)))
        print_json({"judge": str(plan.spec), "file": str(place), **content})
    else:
        _print(plan.spec, result)
        say(err, f"kept in {place}")
    return 0 if result.passed else 1


def _interval(share: Share) -> tuple[float, float]:
    from mnemoscope.stats.intervals import wilson

    return wilson(share.count, share.of)


def _print(spec: Spec, result: ExamResult) -> None:
    table = Table("kind of answer", box=box.SIMPLE_HEAD, show_footer=True)
    table.columns[0].footer = "all"
    shares = (result.false_accept, result.false_reject, result.unjudged)
    total = sum(kind.probes for kind in result.kinds.values())
    for title, footer in zip(
        ("probes", "wrong, accepted", "right, rejected", "unjudged"),
        (total, *(share.count for share in shares)),
        strict=True,
    ):
        table.add_column(title, justify="right", footer=str(footer))
    for name, kind in result.kinds.items():
        counts = (kind.false_accepts, kind.false_rejects, kind.unjudged)
        cells = (Text(str(count), "bold red") if count else Text("·", "dim") for count in counts)
        table.add_row(Text(name, "bold red" if kind.blind else ""), str(kind.probes), *cells)
    out.print(table)
    for label, name in (
        ("accepts wrong answers", "false_accept"),
        ("rejects right answers", "false_reject"),
        ("comes to no verdict", "unjudged"),
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
        f"errs in {blind} of {len(result.kinds)} kinds more often than in "
        f"{result.limits['of_one_kind']:.0%} of it, none allowed",
    )
    for mistake in result.mistakes[:_SHOWN]:
        because = " ".join(mistake.reasoning.split())[:_REASON]
        say(out, f"  {mistake.what} of {mistake.probe}{because and f': {because}'}")
    if (more := len(result.mistakes) - _SHOWN) > 0:
        say(out, f"  and {more} more; --json lists them all")
    if result.usage is not None:
        usage = result.usage
        tokens = usage.input_tokens + usage.output_tokens
        say(err, f"{usage.requests} requests, {tokens:,} tokens, ${usage.paid:.4f} paid")
    if result.passed:
        say(out, f"{spec} may judge.", before="[bold green]PASSED:[/] ")
    else:
        say(out, f"{spec}: {', and '.join(result.reasons)}.", before="[bold red]FAILED:[/] ")
