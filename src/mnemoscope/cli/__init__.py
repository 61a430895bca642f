"""The command line: each command calls the function of `mnemoscope.api` with the same name."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress


def main() -> None:
    """Entry point of the `mnemoscope` command."""
    open_streams()
    from mnemoscope.cli.overview import answered

    if answered(sys.argv[1:]):
        return
    import gc
    import warnings
    from pathlib import Path

    # Set before numpy is imported. One thread per process: units run in parallel processes, and
    # the result of a sum must not depend on the number of threads.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Datasets and journals are many objects without cycles: looking for cycles after every 700
    # new ones takes a tenth of the time of reading them.
    gc.set_threshold(20_000, 20, 20)
    from mnemoscope._store.import_path import name_modules_in

    with suppress(OSError):  # the current folder was deleted
        name_modules_in(Path.cwd())
    from mnemoscope.cli.app import invoke
    from mnemoscope.cli.console import show_warning

    warnings.showwarning = show_warning
    code = invoke(sys.argv[1:])
    gc.freeze()  # else Python looks for cycles in all modules before it ends
    sys.exit(code)


def open_streams() -> None:
    """Make stdin, stdout and stderr usable, whatever the caller did with them.

    A closed one is opened again on nothing, so that no file of a run gets its number. What an
    encoding such as ASCII cannot show is shown as an escape sequence.
    """
    is_mute = sys.stdout is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            from pathlib import Path

            # It gets the lowest free number, which is that of the closed stream.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if is_mute:
        print("note: stdout is closed, so results are not printed", file=sys.stderr)
