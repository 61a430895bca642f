"""Registers the commands, and turns errors into one line and an exit code."""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

import mnemoscope
from mnemoscope._store.errors import EditedRun, MnemoscopeError, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope._store.suggest import nearest
from mnemoscope.cli.console import LogLines, err, say
from mnemoscope.cli.overview import ABOUT, COMMANDS

FAILURE, USAGE, NOT_COMPARABLE, EDITED, INTERRUPTED = 1, 2, 3, 4, 130
_ERROR = "[bold red]error:[/] "
_LACKS_VALUE = re.compile(r"parameter ([\w-]+) requires an argument")
_REMEDIES = {
    errno.ENOSPC: "; the disk is full: free some space and repeat the command to continue",
    errno.ENOTDIR: "; a file is in the place of a folder: choose another path",
    errno.EACCES: "; permission denied: choose another path",
    errno.EROFS: "; the file system is read-only: choose another path",
}

app = App(
    name="mnemoscope",
    help=f"{ABOUT}\n\nTry it offline: `mnemoscope demo`",
    version=mnemoscope.__version__,
    help_format="markdown",
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
logging.getLogger("mnemoscope").addHandler(LogLines())
# Commands are imported on use, which halves the start-up time.
for _name, (_place, _) in COMMANDS.items():
    app.command(f"mnemoscope.cli.{_place}", name=_name)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    for argument in arguments:
        if printable(argument) != argument:
            encoding = sys.getfilesystemencoding()
            return _fail(f"{argument} is not {encoding} text: rename the file or folder", USAGE)
    if not arguments or arguments[-1] in app.help_flags:
        _, [*_, asked], _ = app.parse_commands(arguments[:-1])
        for name in asked:  # import each command, so that its help line is listed
            asked[name]
    try:
        result = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except CycloptsError as error:
        say(err, " ".join(str(error).split()) + _meant(error, arguments), before=_ERROR)
        err.print("[dim]`mnemoscope COMMAND --help` shows examples[/]")
        return USAGE
    except UsageError as error:
        return _fail(error, USAGE)
    except EditedRun as error:
        return _fail(error, EDITED)
    except MnemoscopeError as error:
        return _fail(error, _exit_code(error))
    except BrokenPipeError:  # the reader of stdout, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except UnicodeEncodeError as error:  # such as a current folder whose name is not UTF-8
        return _fail(f"{printable(error.object)} is not UTF-8: rename it", FAILURE)
    except OSError as error:
        return _fail(error, FAILURE, after=_REMEDIES.get(error.errno or 0, ""))
    except KeyboardInterrupt:
        say(err, "interrupted")
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _meant(error: CycloptsError, arguments: Sequence[str]) -> str:
    """What was meant: the flag that a misspelt last one resembles, or an argument before a flag.

    Commands take options of datasets as well, so a misspelt flag lacks its value.
    """
    found = _LACKS_VALUE.search(str(error))
    if found is None:
        return ""
    [*_, command], _ = app.parse_commands(arguments)[1:]
    known = command.assemble_argument_collection()
    if not found[1].startswith("--"):
        several = {name for one in known if one.parameter.consume_multiple for name in one.names}
        taking = [flag for one in arguments if (flag := one.partition("=")[0]) in several]
        return (
            f" {taking[0]} takes all words that follow it, up to the next flag: write "
            f"`mnemoscope {command.name[0]} {found[1]} {taking[0]} …`"
            if taking
            else ""
        )
    flags = {name for argument in known for name in argument.names}
    near = "" if found[1] in flags else nearest(found[1], flags)
    return near and f" There is no such flag: did you mean {near}?"


def _exit_code(error: MnemoscopeError) -> int:
    from mnemoscope.analysis.compare import NotComparable  # imports numpy, so only after an error

    return NOT_COMPARABLE if isinstance(error, NotComparable) else FAILURE


def _fail(error: Exception | str, code: int, after: str = "") -> int:
    say(err, f"{error}{after}", before=_ERROR)
    return code


if __name__ == "__main__":
    sys.exit(invoke(sys.argv[1:]))
