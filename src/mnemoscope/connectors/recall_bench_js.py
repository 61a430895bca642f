"""The connector for JavaScript adapters of Recall Bench: `recall-bench-js:./adapter.mjs`.

A small Node program that comes with the package loads the adapter and speaks the protocol of the
stdio connector, so an adapter is isolated as any other child process is.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.yaml import load_yaml
from mnemoscope.connectors.recall_bench_days import DayIndex, day_memory
from mnemoscope.connectors.stdio import Stdio
from mnemoscope.types import Memory

_SHIM = Path(__file__).with_name("recall_bench_shim.mjs")
_SECRET = re.compile(r"(?:key|token|secret|password|credential|authorization)s?$", re.IGNORECASE)
_NOTES = [
    "The interface of Recall Bench has no hits: answers are judged, recall is not measured.",
    "The system does not get the time or the session of a question.",
]


class RecallBenchJs(Stdio):
    """A JavaScript adapter as a system: it ingests days of one history, and answers questions.

    `factory` is the exported function that makes the adapter; without it the default export is the
    adapter. `config` is what the factory gets: a YAML or JSON file, or a profile of Recall Bench,
    whose `harness.config` is used. `timeout` is how many seconds a call may take, `start` how many
    loading the adapter may take. With `live` it has the user's own home and may write anywhere.
    """

    def __init__(
        self,
        address: str,
        factory: str = "",
        config: str = "",
        timeout: float = 3600.0,
        start: float = 120.0,
        live: bool = False,
    ) -> None:
        adapter = Path(address)
        if not address.strip():
            raise UsageError("the adapter is missing; write recall-bench-js:./adapter.mjs")
        if not adapter.is_file():
            raise MissingData(
                f"recall-bench-js:{address}: there is no such file; build the adapter, and name "
                "the built .js or .mjs file"
            )
        if (node := shutil.which("node")) is None:
            raise UsageError(
                "a JavaScript adapter needs Node 18 or later, and there is no node on the PATH: "
                "install it from https://nodejs.org"
            )
        self._adapter = adapter.absolute()
        super().__init__([node, str(_SHIM), str(self._adapter)], timeout, start, live)
        self._settings = {"factory": factory, "config": _config(Path(config)) if config else {}}
        self._scope = ""
        self._days = DayIndex()

    def identity(self) -> dict[str, Any]:
        hello = self._described()
        about = hello["identity"]
        return {
            "factory": self._settings["factory"],
            "config": _without_secrets(self._settings["config"]),
            # By role, not by path: the same adapter elsewhere is the same system.
            "files_sha256": {"adapter": sha256_file(self._adapter), "shim": sha256_file(_SHIM)},
            "hello": {**hello, "identity": {**about, "notes": [*about.get("notes", []), *_NOTES]}},
        }

    def _reset(self, scope: str) -> None:
        super()._reset(scope)
        self._scope, self._days = scope, DayIndex()

    def _remember(self, memories: Sequence[Memory]) -> dict[str, Any] | None:
        days = self._days.days(self._scope, memories)
        return super()._remember([day_memory(day) for day in days])


def _config(path: Path) -> dict[str, Any]:
    """The config of an adapter: the whole file, or the part of a profile."""
    try:
        content = load_yaml(path)
        msgspec.json.encode(content)
    except FileNotFoundError:
        raise MissingData(f"config={path}: no such file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text: {error}", file=path) from None
    except (TypeError, ValueError) as error:
        raise DataError(f"cannot be written as JSON: {error}", file=path) from None
    if isinstance(content, dict) and isinstance(content.get("harness"), dict):
        content = content["harness"].get("config")
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise DataError("is not a mapping of names to values, which a factory gets", file=path)
    return content


def _without_secrets(value: Any, name: str = "") -> Any:
    """The config for the record: of what is named like a key, only a hash."""
    if isinstance(value, dict):
        # What a secret consists of is secret, whatever its parts are called.
        return {
            key: _without_secrets(one, name if _SECRET.search(name) else str(key))
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(one, name) for one in value]
    if isinstance(value, str) and value and _SECRET.search(name):
        return f"sha256:{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return value
