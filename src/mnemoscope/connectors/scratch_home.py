"""Where a system that we start finds its home, and what it may change.

By default its home, its current folder and its temporary folder are new and empty, so that it finds
no memory of the user and writes to none. A server that the user wants tested on its own files gets
them by `live=on`; with `read_only=on` it gets them, and may not change them.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope.connectors.child_environment import child_environment, passed_on
from mnemoscope.isolation.lock import best_mechanism

_HOMES = {
    "HOME": "",
    "USERPROFILE": "",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "APPDATA": "AppData/Roaming",
    "LOCALAPPDATA": "AppData/Local",
    # Of servers that would write elsewhere than into their home, such as beside their own code.
    "MEMORY_FILE_PATH": "memory.jsonl",
    "MEM0_DIR": ".mem0",
    "BASIC_MEMORY_HOME": "basic-memory",
    "MCP_MEMORY_BASE_DIR": ".mcp-memory",
}
"""Variables that name a place to write to, and the place below the scratch home."""
_STORE = re.compile(
    r"(?:^|_)(?:MEMOR(?:Y|IES)|MEM0|KNOWLEDGE|GRAPH|VAULT|NOTES?|STORES?|STORAGE|DB|DATABASE|SQLITE"
    r"|CHROMA|QDRANT|LANCEDB|NEO4J|REDIS|MONGO(?:DB)?|POSTGRES(?:QL)?|WEAVIATE|MILVUS|PINECONE|ZEP"
    r"|LETTA|COGNEE|FALKORDB|MEMGRAPH|SUPABASE|SUPERMEMORY|ELASTICSEARCH|OPENSEARCH|MYSQL)(?:_|$)",
    re.I,
)
_LIBPQ = re.compile(r"PG(?:HOST|HOSTADDR|PORT|DATABASE|USER|SERVICE|DATA|PASSFILE)")
# A key of a service opens the account of the user there, which has one store.
_PLACE = re.compile(
    r"(?:^|_)(?:PATH|FILE|DIR|DIRECTORY|FOLDER|HOME|ROOT|URL|URI|DSN|HOST|KEY|TOKEN)$", re.I
)
_TOOLS = {
    "UV_CACHE_DIR": ".cache/uv",
    "PIP_CACHE_DIR": ".cache/pip",
    "DENO_DIR": ".cache/deno",
    "BUN_INSTALL_CACHE_DIR": ".bun/install/cache",
    "GOMODCACHE": "go/pkg/mod",
    "GOCACHE": ".cache/go-build",
    "HF_HOME": ".cache/huggingface",
    "TORCH_HOME": ".cache/torch",
}
"""Downloads of package runners and model hubs: without them each start would download again."""
_DOWNLOADS_OF_NPM = "_cacache"
_PROGRAMS_OF_NPX = "_npx"
"""npx writes a lock beside its programs, and the reference memory server its memories: so a child
gets a copy, without data files unless it is to read them."""
_DATA = ("*.jsonl", "*.db", "*.db-*", "*.sqlite", "*.sqlite3")
_PROGRAMS = {
    "npm_config_userconfig": ".npmrc",
    "UV_TOOL_DIR": ".local/share/uv/tools",
    "UV_PYTHON_INSTALL_DIR": ".local/share/uv/python",
    "BUN_INSTALL": ".bun",
    "GOPATH": "go",
    "PYTHONUSERBASE": ".local",
    "PYENV_ROOT": ".pyenv",
    "NVM_DIR": ".nvm",
    "VOLTA_HOME": ".volta",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
    "DOCKER_CONFIG": ".docker",
}
"""Installed programs and settings that a command may need; it cannot change them."""
_OF_A_PROJECT = frozenset(
    "npm npx pnpm yarn bun bunx deno uv uvx poetry pdm hatch pipenv cargo go make just dotnet mvn "
    "gradle bundle mix sh bash".split()
)
"""Programs that read the project of the current folder: they stay in it, and cannot change it."""
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_RUNNING = frozenset({"exec", "start", "attach", "compose"})
_REMOTE = frozenset({"ssh", "kubectl", "docker-compose", "podman-compose"})
_log = logging.getLogger(__name__)
_VOLUME = re.compile(r"-v|--volume|--mount|--volumes-from|(?:-v|--volume=|--mount=).+")


class ChildPlaces(NamedTuple):
    """How to start a child so that it writes where it may."""

    words: list[str]
    environment: dict[str, str]
    folder: str | None
    """Its current folder, if it is not ours."""
    writes: list[str] | None
    """What it may change besides its scratch folder; None means anything."""


def child_places(
    words: Sequence[str], scratch: str, *, live: bool = False, read_only: bool = False
) -> ChildPlaces:
    """The places of a child: a scratch home, or with one of the options the user's own."""
    own = child_environment(scratch)
    if live:
        return ChildPlaces(list(words), own, None, None)
    _refuse_unguarded(words)
    if best_mechanism() is None:
        _note_no_guard(read_only)
    real = Path.home()
    tools = {name: own.get(name) or str(real / place) for name, place in _TOOLS.items()}
    npm = Path(own.get("npm_config_cache") or real / ".npm")
    caches = (*tools.values(), str(npm / _DOWNLOADS_OF_NPM))
    writes = [place for place in caches if _is_cache(Path(place))]
    npx = _npm_variables(words, npm, scratch, with_data=read_only)
    if read_only:
        return ChildPlaces(list(words), {**own, **npx}, None, writes)
    home = Path(scratch, "home")
    for place in (home, *(home / below for name, below in _HOMES.items() if "HOME" in name)):
        place.mkdir(parents=True, exist_ok=True)
    kept = {
        name: value
        for name, value in own.items()
        if not is_store(name, value) or name in passed_on()
    }
    programs = {name: own.get(name) or str(real / place) for name, place in _PROGRAMS.items()}
    there = {name: place for name, place in {**tools, **programs}.items() if Path(place).exists()}
    homes = {name: str(home / below) for name, below in _HOMES.items() if name not in passed_on()}
    environment = {**kept, **there, **homes, **npx}
    environment["MNEMOSCOPE_FOLDER"] = str(Path.cwd())
    program = Path(words[0]).name
    if program in _OF_A_PROJECT:
        return ChildPlaces(list(words), environment, None, writes)
    if re.match(r"(?:python|pypy)[\d.]*$", program) and {"-m", "-c"} & {*words}:
        # These put the current folder on the path, where the module may be.
        path = [str(Path.cwd()), *filter(None, [environment.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(path)
    folder = Path(scratch, "work")
    folder.mkdir(exist_ok=True)
    return ChildPlaces(_absolute(words), environment, str(folder), writes)


def _is_cache(place: Path) -> bool:
    """Whether a folder may be written to: not one that contains the user's home or project."""
    real = place.resolve()
    holds = any(Path(own).resolve().is_relative_to(real) for own in (Path.home(), Path.cwd()))
    return real.is_dir() and not holds


def _npm_variables(
    words: Sequence[str], cache: Path, scratch: str, *, with_data: bool
) -> dict[str, str]:
    """Let npx run a copy of the program that it installed, or install one from its downloads."""
    if Path(words[0]).name not in ("npx", "npm"):
        return {}
    own, downloads = Path(scratch, "npm"), cache / _DOWNLOADS_OF_NPM
    (own / _PROGRAMS_OF_NPX).mkdir(parents=True, exist_ok=True)
    if downloads.is_dir():
        (own / _DOWNLOADS_OF_NPM).symlink_to(downloads.resolve())
    ignored = None if with_data else shutil.ignore_patterns(*_DATA)
    for program in (cache / _PROGRAMS_OF_NPX).glob("*/package.json"):
        if _is_named(program, words):
            place = own / _PROGRAMS_OF_NPX / program.parent.name
            shutil.copytree(program.parent, place, symlinks=True, ignore=ignored)
    return {
        "npm_config_cache": str(own),
        "npm_config_prefer_offline": "true",
        "npm_config_update_notifier": "false",
    }


def _is_named(package: Path, words: Sequence[str]) -> bool:
    """Whether the command names a package that this folder of npx contains."""
    try:
        names = json.loads(package.read_bytes())["dependencies"]
        return any(name in word for name in names for word in words[1:])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_store(name: str, value: str) -> bool:
    """Whether a variable of the user probably says where a program keeps its data."""
    if _LIBPQ.fullmatch(name):
        return True
    return bool(_STORE.search(name)) and ("/" in value or bool(_PLACE.search(name)))


def _absolute(words: Sequence[str]) -> list[str]:
    """The words with the files of our current folder by their full paths."""
    found = [_full(words[0]) if "/" in words[0] else words[0]]
    for before, word in pairwise(words):
        option, equals, value = word.rpartition("=")
        is_code = before in ("-m", "-c")
        if not is_code and not Path(value).is_absolute() and _is_path(value):
            word = f"{option}{equals}{_full(value)}"
        found.append(word)
    return found


def _is_path(value: str) -> bool:
    return Path(value).is_file() or ("/" in value and Path(value).exists())


def _full(path: str) -> str:
    """Links stay: a program of a virtual environment is one, and finds its packages beside it."""
    return str(Path.cwd() / path)


def _refuse_unguarded(words: Sequence[str]) -> None:
    """A container or another machine writes through a service that no guard of ours reaches."""
    # A wrapper may start it: `sh -c "docker run …"`, `sudo docker run …`.
    parts = [part for word in words for part in word.split()]
    names = {Path(part).name for part in parts}
    mounts = [part for part in parts if _VOLUME.fullmatch(part)]
    if names & _CONTAINERS and mounts:
        raise UsageError(
            f"{words[0]} {mounts[0]} gives the container a volume, which may be your own memory, "
            "and nothing keeps it from writing there: leave the volume out, or say live=on"
        )
    reached = [
        program
        for program, after in pairwise([*parts, ""])
        if Path(program).name in _REMOTE
        or (Path(program).name in _CONTAINERS and after in _RUNNING)
    ]
    if reached:
        raise UsageError(
            f"{reached[0]} reaches a machine or a container that may hold your own memory, and "
            "nothing keeps the system from writing there: start it here, or say live=on"
        )


@cache
def _note_no_guard(read_only: bool) -> None:
    """Refuse to read a store that nothing protects; say once that fixed paths are not protected."""
    missing = "this machine has no Landlock, bubblewrap or sandbox-exec"
    if read_only:
        raise UsageError(
            f"{missing}, so nothing keeps the system from changing the files that it is to read: "
            "give it a copy, or add live=on if it may change them"
        )
    _log.warning(
        "%s: a system that writes to a fixed path, or to the current folder of npx or sh, changes "
        "your own files there",
        missing,
    )
