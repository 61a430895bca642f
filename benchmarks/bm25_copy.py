"""The built-in bm25 as a third party would hand it in, so that it runs in a host process.

As a script it runs the copy on LoCoMo through the Python API: `here` in the worker process itself,
because no other process can import a class of a script, or `hosted` like every class of a module.
"""

from __future__ import annotations

import sys

from mnemoscope.systems.builtin.bm25 import Bm25


class Bm25Copy(Bm25):
    """The same code under another name."""

    def __init__(self) -> None:
        super().__init__(cache=False)


def main() -> None:
    import mnemoscope as ms

    place, data, out, workers = sys.argv[1:]
    system = Bm25Copy if place == "here" else "bm25_copy:Bm25Copy"
    ms.run(
        "locomo",
        systems={"copy": system},
        data=data or None,
        out=out,
        baselines=False,
        workers=int(workers),
    )


if __name__ == "__main__":
    main()
