"""Wires the commands together, and turns errors into one line and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

import mnemoscope
from mnemoscope.cli import datasets, demo, report, run, score, systems
from mnemoscope.cli.console import err, say
from mnemoscope.core.errors import MnemoscopeError, UsageError

FAILURE, USAGE, INTERRUPTED = 1, 2, 130
_ERROR = "[bold red]error:[/] "

app = App(
    name="mnemoscope",
    help="Measure how well AI agents' memory systems remember.\n\n"
    "Try it now, offline: `mnemoscope demo`",
    version=mnemoscope.__version__,
    help_format="markdown",
    default_parameter=Parameter(negative=()),
)
app.command(run.run)
app.command(score.score)
app.command(report.report)
app.command(demo.demo)
app.command(datasets.app)
app.command(systems.app)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    try:
        result = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        say(err, " ".join(str(error).split()), before=_ERROR)
        err.print("[dim]mnemoscope COMMAND --help shows examples[/]")
        return USAGE
    except UsageError as error:
        return _fail(error, USAGE)
    except MnemoscopeError as error:
        return _fail(error, FAILURE)
    except OSError as error:
        return _fail(error, FAILURE)
    except KeyboardInterrupt:
        err.print("\ninterrupted; everything recorded is kept, the same command goes on from here")
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _fail(error: Exception, code: int) -> int:
    say(err, str(error), before=_ERROR)
    return code


if __name__ == "__main__":
    sys.exit(invoke(sys.argv[1:]))
