"""Starts commands fast: a script that imports everything once, and forks itself for each command.

It reads one order a line, {"arguments": […], "environment": {…}, "output": file, "file_bytes": n}.
It prints the process id at once, and the exit code when the process has ended. Each command leads
its own process group, as if a shell had started it.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
from typing import Any

import mnemoscope.datasets.locomo
import mnemoscope.datasets.personas
import mnemoscope.models.http_client
import mnemoscope.personas.audit.persona_audit
import mnemoscope.personas.write.passes
import mnemoscope.reports.run_report
import mnemoscope.reports.run_tables
import mnemoscope.runner.run
import mnemoscope.systems.builtin.hybrid  # noqa: F401
from mnemoscope.cli.app import invoke
from mnemoscope.models.embedders import WordLlamaEmbedder
from mnemoscope.runner import rare_collections


def begin(order: dict[str, Any]) -> int:
    """Run the ordered command in this process; returns its exit code."""
    os.setpgid(0, 0)
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(order["environment"])
    if order["file_bytes"]:
        # Python raises OSError for a write beyond the limit only if the signal does not kill it.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], resource.RLIM_INFINITY))
    return invoke(order["arguments"])


def main() -> int:
    WordLlamaEmbedder().embed(["forks share what is loaded"])
    gc.set_threshold(20_000, 20, 20)  # as the installed command does
    gc.freeze()
    rare_collections.is_frozen = lambda: True  # each command would count what is frozen
    os.fsync = lambda fd: None  # a killed process loses nothing without it, a small run its time
    for line in sys.stdin:
        order = json.loads(line)
        process = os.fork()
        if process == 0:
            return begin(order)
        # In both processes, so that the group exists before either goes on.
        os.setpgid(process, process)
        os.write(1, b"%d\n" % process)
        _, status = os.waitpid(process, 0)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))
    return 0


if __name__ == "__main__":
    sys.exit(main())
