"""For tests of integrations with PostgreSQL: the systems, and a separate server."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mnemoscope.integrations import environments, integration
from mnemoscope.integrations.integration import Integration
from mnemoscope.types import Memory, Scalar

TEXTS = (
    "Ferribane traded seven goats for a sailing boat.",
    "Umbrecht lost his passport inside an accordion case.",
    "Velloway writes every letter with a peacock feather.",
    "Ozimandra keeps bees on the roof of the old museum.",
)
MEMORIES = [
    Memory(f"talk/{number}", text, datetime(2021, 5, number, 9, tzinfo=UTC), "talk", "Ann")
    for number, text in enumerate(TEXTS, start=1)
]
# Its stdin gives a folder of extensions; the server stops at the end of stdin.
_SERVER = """
import shutil, sys
from pathlib import Path
from memory_adapters.common import scratch
from memory_adapters.postgres_server import Database, readable_by_the_server
database, place = Database(""), scratch("share")
if folder := sys.stdin.readline().strip():
    shutil.copytree(folder, place / "extension")
    readable_by_the_server(place)
database.connection.execute(f"ALTER SYSTEM SET extension_control_path = '{place}:$system'")
database.rows("SELECT pg_reload_conf()")
print(database._server.address, flush=True)
sys.stdin.read()
database.close()
"""


@contextmanager
def opened(name: str, **options: Scalar) -> Iterator[Any]:
    system: Any = Integration(name, options, embedder="wordllama")
    try:
        yield system
    finally:
        system.close()


@contextmanager
def server(extensions: Path | str = "") -> Iterator[str]:
    """A separate PostgreSQL server; yields its dsn."""
    with tempfile.TemporaryDirectory() as scratch:
        place = {
            "PYTHONPATH": str(Path(integration.__file__).parent),
            "MNEMOSCOPE_SCRATCH": scratch,
        }
        with subprocess.Popen(
            [environments.python_of("postgres"), "-P", "-c", _SERVER],
            env={**os.environ, **place},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{extensions}\n")
            process.stdin.flush()
            yield process.stdout.readline().strip()
            process.stdin.close()


def another_database(dsn: str, name: str) -> str:
    """An empty database on the same server."""
    asked(dsn, f"CREATE DATABASE {name}")
    return dsn.replace("dbname=postgres", f"dbname={name}")


def asked(dsn: str, sql: str) -> list[list[Any]]:
    """Rows of another connection, through the environment's psycopg."""
    program = (
        "import json, sys, psycopg; rows = psycopg.connect(sys.argv[1], autocommit=True)"
        ".execute(sys.argv[2]); "
        "print(json.dumps([list(row) for row in rows] if rows.description else []))"
    )
    words = [str(environments.python_of("postgres")), "-c", program, dsn, sql]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    rows: list[list[Any]] = json.loads(ended.stdout)
    return rows


def ids(hits: list[dict[str, Any]]) -> list[str]:
    return [hit["id"] for hit in hits]
