"""Counts the functions of the package that a command calls: `python tools/count_calls.py run …`.

The processes that the command forks are counted, too. A function is one `def`: lambdas,
comprehensions, module and class bodies are not counted.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "mnemoscope"


def main(arguments: list[str]) -> int:
    """Run the command, then print the counts to stderr and the functions to calls.txt."""
    with tempfile.NamedTemporaryFile(suffix=".calls") as log:
        seen: set[CodeType] = set()
        prefix = str(PACKAGE)

        def note(frame: FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if event != "call" or code in seen:
                return
            seen.add(code)
            if code.co_filename.startswith(prefix) and "<" not in code.co_name:
                is_body = not code.co_flags & 0x2  # CO_NEWLOCALS: what only functions have
                if not is_body:
                    place = Path(code.co_filename).relative_to(PACKAGE)
                    line = f"{place}:{code.co_firstlineno} {code.co_qualname}\n"
                    with open(log.name, "a", encoding="utf-8") as file:  # noqa: PTH123
                        file.write(line)

        threading.setprofile(note)
        sys.setprofile(note)
        from mnemoscope.cli.app import invoke

        code = invoke(arguments)
        sys.setprofile(None)
        lines = sorted(set(Path(log.name).read_text(encoding="utf-8").splitlines()))
    files = {line.partition(":")[0] for line in lines}
    Path(os.environ.get("CALLS", "calls.txt")).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} functions in {len(files)} files", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
