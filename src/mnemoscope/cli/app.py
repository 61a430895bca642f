"""Wires the commands together, and turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

import mnemoscope
from mnemoscope.cli import (
    again,
    canaries,
    compare,
    datasets,
    demo,
    judges,
    models,
    personas,
    protocols,
    published,
    release,
    report,
    run,
    run_personas,
    score,
    serve,
    systems,
    verify,
)
from mnemoscope.cli.console import err, say
from mnemoscope.core.errors import MnemoscopeError, UsageError

FAILURE, USAGE, NOT_COMPARABLE, INTERRUPTED = 1, 2, 3, 130
_ERROR = "[bold red]error:[/] "

app = App(
    name="mnemoscope",
    help="Measure how well AI agents' memory systems remember.\n\n"
    "Try it now, offline: `mnemoscope demo`",
    version=mnemoscope.__version__,
    help_format="markdown",
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
running = App(name="run", help_format="markdown")
running.default(run.run)
running.command(run_personas.run_personas, name="personas")
app.command(running)
app.command(score.score)
app.command(report.report)
app.command(compare.compare)
app.command(compare.gate)
app.command(verify.verify)
app.command(again.judge)
app.command(again.answer)
app.command(demo.demo)
app.command(run_personas.ranges)
app.command(canaries.canaries)
app.command(personas.app)
app.command(datasets.app)
app.command(systems.app)
app.command(serve.app)
app.command(judges.app)
app.command(models.app)
app.command(published.app)
app.command(protocols.app)
app.command(release.app)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    try:
        result = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except CycloptsError as error:
        say(err, " ".join(str(error).split()), before=_ERROR)
        err.print("[dim]mnemoscope COMMAND --help shows examples[/]")
        return USAGE
    except UsageError as error:
        return _fail(error, USAGE)
    except MnemoscopeError as error:
        return _fail(error, _exit_code(error))
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except OSError as error:
        return _fail(error, FAILURE)
    except KeyboardInterrupt:
        say(err, "interrupted")
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _exit_code(error: MnemoscopeError) -> int:
    from mnemoscope.analysis.compare import NotComparable  # numpy: only when something failed

    return NOT_COMPARABLE if isinstance(error, NotComparable) else FAILURE


def _fail(error: Exception, code: int) -> int:
    say(err, str(error), before=_ERROR)
    return code


if __name__ == "__main__":
    sys.exit(invoke(sys.argv[1:]))
