"""Which folders a system may not change, because our next process runs what is in them.

A locked system that plants `sitecustomize.py` in a folder of `PYTHONPATH`, or a program in a folder
of `PATH`, would run unlocked in the next run.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path
from typing import NamedTuple

from mnemoscope._store.import_path import path_of_hosts
from mnemoscope.isolation.hidden_paths import all_names, contains, every_name

_PACKAGE = Path(__file__).parents[1]
# Root can write to these; for other users nothing changes.
_SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot", "/usr/bin", "/usr/sbin"),
    *("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/bin", "/usr/local/sbin"),
    *("/usr/local/lib", "/usr/local/etc", "/var/spool/cron", "/var/spool/at"),
)
_OF_PREFIX = ("bin", "lib", "lib64", "Scripts", "pyvenv.cfg")
# Files and folders in the user's home from which shells, Python and its installers, git, ssh, node,
# editors, debuggers and the session take commands.
_OF_HOME = (
    *(".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases"),
    *(".zshenv", ".zprofile", ".zshrc", ".zlogin", ".config/fish", ".pam_environment"),
    *(".gitconfig", ".config/git", ".ssh", ".pythonrc", ".pythonrc.py", ".ipython", ".jupyter"),
    *(".config/matplotlib", ".config/systemd", ".config/autostart", ".config/environment.d"),
    *(".npmrc", ".node_modules", ".node_libraries", ".nvm", ".pyenv", ".cargo/env", ".cargo/bin"),
    *(".cargo/config.toml", ".local/bin", ".oh-my-zsh", ".zlogout", ".xprofile", ".xsessionrc"),
    *(".pip", ".config/pip", ".pydistutils.cfg", ".config/uv", ".condarc", ".pdbrc", ".gdbinit"),
    *(".vimrc", ".vim", ".config/nvim", ".tmux.conf", ".direnvrc", ".config/direnv"),
)
_STARTUP = ("sitecustomize", "usercustomize")


class TrustedPaths(NamedTuple):
    """What a locked child cannot change."""

    read_only: tuple[Path, ...]
    """Files and folders, with all that they contain; some do not exist."""
    sealed: tuple[Path, ...]
    """Folders in which nothing can be made, renamed or removed; what they contain has its own
    rules."""


def trusted_paths(hidden: Sequence[Path], readable: Iterable[Path] = ()) -> TrustedPaths:
    """What this process and the next one run; `readable` can be read inside of hidden folders.

    Folders that may contain the user's data too, such as the current one, are sealed: modules and
    packages in them are read-only, and other folders in them can be written to.
    """
    here = Path(os.path.realpath(os.curdir))
    around = {parent for path in (*hidden, here / "any") for parent in path.parents}
    known = (path for path in every_name(readable) if _is_there(path) and path not in around)
    read_only = dict.fromkeys(known)
    sealed: dict[Path, None] = {}

    def protect(path: Path, *, is_shared: bool = False) -> None:
        if contains([*hidden, *read_only], path) is not None or path in sealed:
            return
        if (is_shared or path in around) and _is_there(f"{path}/"):
            sealed[path] = None
            for entry in _runnable(path):
                protect(entry)
        else:
            read_only[path] = None

    for path in sorted(set(every_name(_fixed_places()))):
        protect(path)
    for path in sorted(set(every_name(_import_places()))):
        protect(path, is_shared=True)
    return TrustedPaths(all_names(read_only), tuple(sealed))


def _fixed_places() -> Iterator[Path]:
    """Folders that contain programs and libraries, and files that configure them."""
    yield _PACKAGE
    yield from map(Path, _SYSTEM)
    for prefix in {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}:
        yield from (Path(prefix, name) for name in _OF_PREFIX)
    installed = sysconfig.get_paths()
    named = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    yield from (Path(installed[name]) for name in named)
    yield Path(site.getusersitepackages())
    for name in ("PATH", "LD_LIBRARY_PATH", "NODE_PATH"):
        yield from _places_in(name)
    with suppress(RuntimeError):  # a user without a home
        yield from (Path.home() / name for name in _OF_HOME)
    here = Path(os.path.realpath(os.curdir))
    repositories = (folder / ".git" for folder in (here, *here.parents))
    yield from filter(_is_there, repositories)


def _is_there(path: Path | str) -> bool:
    return os.access(path, os.F_OK)  # `exists` raises an error below a folder of another user


def _places_in(variable: str) -> Iterator[Path]:
    """The folders that a variable lists; an empty one is the current folder."""
    if given := os.environ.get(variable):
        yield from (Path(place or os.curdir) for place in given.split(os.pathsep))


def _import_places() -> Iterator[Path]:
    """Where this process imports from, and where the next one will."""
    yield from (Path(place or os.curdir) for place in path_of_hosts())
    yield from _places_in("PYTHONPATH")
    # An editable install can import packages from folders that are not on the path.
    installed = tuple(f"{prefix}{os.sep}" for prefix in {sys.prefix, sys.base_prefix})
    on_path, suffixes = set(sys.path), tuple(all_suffixes())
    for name, module in list(sys.modules.items()):
        if "." in name:
            continue
        file, folders = getattr(module, "__file__", None), getattr(module, "__path__", None)
        for place in (file,) if folders is None else folders:
            if not isinstance(place, str) or place.startswith(installed):
                continue
            # A module in a folder of the path is protected with the folder.
            folder = place.rpartition(os.sep)[0]
            if folders is None and place.endswith(suffixes) and folder in on_path:
                continue
            yield Path(place)


def _runnable(folder: Path) -> Iterator[Path]:
    """What can be imported or started from a folder, among what it contains."""
    elsewhere = [place for place in path_of_hosts() if os.path.realpath(place) != str(folder)]
    with suppress(OSError):
        for entry in os.scandir(folder):
            path = Path(entry.path)
            if entry.is_dir():
                if _is_package(path) or _shadows(entry.name, elsewhere):
                    yield path
            elif entry.name.endswith((*all_suffixes(), ".pth")) or (
                entry.is_file() and os.access(path, os.X_OK)
            ):
                yield path


def _is_package(folder: Path) -> bool:
    """Whether a folder contains modules; `import` takes it for a package."""
    if folder.name == "__pycache__":
        return True
    with suppress(OSError):
        return any(entry.name.endswith(tuple(all_suffixes())) for entry in os.scandir(folder))
    return False


def _shadows(name: str, elsewhere: Sequence[str]) -> bool:
    """Whether a folder with this name would replace a module that we import, once it has code."""
    if name in sys.stdlib_module_names or name in _STARTUP:
        return True
    if not name.isidentifier():
        return False
    found = PathFinder.find_spec(name, [*elsewhere])
    return found is not None and found.has_location  # a folder without code has none
