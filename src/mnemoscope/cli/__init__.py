"""The command line: a thin skin over functions that a notebook can call with the same names."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Entry point of the `mnemoscope` command."""
    # Set before numpy is imported. One thread a process: units run in parallel processes, and a
    # sum must not depend on how many threads shared it.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # A system given as module:Name may live in the folder the user stands in. That folder comes
    # after the standard library, so that somebody's random.py or json.py does not replace ours.
    packages = (i for i, place in enumerate(sys.path) if place.endswith("site-packages"))
    sys.path.insert(next(packages, len(sys.path)), str(Path.cwd()))
    from mnemoscope.cli.app import invoke

    sys.exit(invoke(sys.argv[1:]))
