"""The command line: each command calls the function of `mnemoscope.api` with the same name."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Entry point of the `mnemoscope` command."""
    # Set before numpy is imported. One thread per process: units run in parallel processes, and
    # the result of a sum must not depend on the number of threads.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # A system given as module:Name may be in the current folder. That folder comes after the
    # standard library, so that a random.py or json.py in it does not replace a library module.
    packages = (i for i, place in enumerate(sys.path) if place.endswith("site-packages"))
    sys.path.insert(next(packages, len(sys.path)), str(Path.cwd()))
    from mnemoscope.cli.app import invoke

    sys.exit(invoke(sys.argv[1:]))
