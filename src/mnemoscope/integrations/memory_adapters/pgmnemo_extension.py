"""Installs pgmnemo in a database from a folder of its files, or finds it installed."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from .common import scratch
from .postgres_server import Database, UsageError, readable_by_the_server

VARIABLE = "MNEMOSCOPE_PGMNEMO"
_NAME = "pgmnemo"
_CONTROL = f"{_NAME}.control"
_MISSING = (
    "pgmnemo is an extension of PostgreSQL that no package index has. Set "
    f"{VARIABLE} to a folder with its {_CONTROL} and {_NAME}--VERSION.sql, or give dsn=… of a "
    "server that has it"
)
# For a folder that contains only the script.
_OWN_CONTROL = f"""\
comment = 'pgmnemo'
default_version = '{{version}}'
requires = 'vector'
relocatable = false
schema = '{_NAME}'
"""
_DEFINITIONS = """
    SELECT pg_get_functiondef(oid) FROM pg_proc
    WHERE pronamespace = to_regnamespace('pgmnemo') AND prokind = 'f'
    ORDER BY oid::regprocedure::text"""


def install(database: Database, version: str) -> dict[str, Any]:
    """Install the extension if needed; returns its version and hashes."""
    folder = os.environ.get(VARIABLE, "")
    if not database.is_ours:
        files = {}
        _create(database, version)
    elif folder:
        files = _from_folder(database, Path(folder).expanduser(), version)
    else:
        raise UsageError(_MISSING)
    there = database.rows("SELECT extversion FROM pg_extension WHERE extname = %s", [_NAME])[0][0]
    if version and there != version:
        raise UsageError(f"version={version}: the server has pgmnemo {there}")
    return {
        "version": there,
        **({"extension_sha256": files} if files else {}),
        "functions_sha256": _hash("\n".join(row[0] for row in database.rows(_DEFINITIONS))),
    }


def _create(database: Database, version: str) -> None:
    import psycopg

    chosen = f" VERSION '{version}'" if version else ""
    try:
        database.connection.execute(f"CREATE EXTENSION IF NOT EXISTS {_NAME}{chosen} CASCADE")
    except psycopg.Error as error:
        wanted = f"pgmnemo {version}" if version else "pgmnemo"
        hint = "" if database.is_ours else f". {_MISSING}"
        raise UsageError(
            f"{wanted} cannot be installed here: {error.diag.message_primary}{hint}"
        ) from None


def _from_folder(database: Database, folder: Path, version: str) -> dict[str, str]:
    """Install from a copy of the folder: the server may run as another user."""
    scripts = sorted(folder.glob(f"{_NAME}--*.sql")) if folder.is_dir() else []
    if not scripts:
        raise UsageError(f"{VARIABLE}={folder}: it contains no {_NAME}--VERSION.sql")
    control = folder / _CONTROL
    settings = control.read_text() if control.is_file() else _control_for(scripts)
    named = re.search(r"^\s*default_version\s*=\s*'([^']*)'", settings, re.MULTILINE)
    wanted = version or (named[1] if named else "")
    # The script that creates the version, or all scripts that may lead to it.
    whole = [script for script in scripts if script.name == f"{_NAME}--{wanted}.sql"]
    place = scratch(_NAME)
    (place / "extension").mkdir()
    (place / "extension" / _CONTROL).write_text(settings)
    for script in whole or scripts:
        (place / "extension" / script.name).write_bytes(script.read_bytes())
    readable_by_the_server(place)
    database.connection.execute(f"SET extension_control_path = '{place}:$system'")
    _create(database, wanted)
    return {script.name: _hash(script.read_bytes()) for script in whole or scripts}


def _control_for(scripts: list[Path]) -> str:
    whole = [name for script in scripts if "--" not in (name := script.stem[len(_NAME) + 2 :])]
    if len(whole) != 1:
        found = ", ".join(whole) or "none"
        raise UsageError(
            f"{scripts[0].parent}: without a {_CONTROL} there must be one "
            f"{_NAME}--VERSION.sql that creates a version from scratch; found: {found}"
        )
    return _OWN_CONTROL.format(version=whole[0])


def _hash(content: bytes | str) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
