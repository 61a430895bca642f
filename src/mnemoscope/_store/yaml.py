"""YAML 1.2: dates stay strings, `no` and `on` are strings, 012 is twelve.

PyYAML implements YAML 1.1, which turns `2026-05-10` into a date and `off` into False. Here only
true, false, null and numbers are not strings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from mnemoscope._store.errors import DataError


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, in C if PyYAML has it, without the implicit types of YAML 1.1."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )
_Loader.add_constructor(
    "tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node))
)
_Loader.add_constructor(
    "tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node))
)


def load_yaml(path: Path) -> Any:
    return parse_yaml(path.read_text(encoding="utf-8"), path)


def parse_yaml(text: str, path: Path) -> Any:
    """The document as dicts, lists and scalars; a syntax error names the line."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise DataError(problem, file=path, line=mark.line + 1 if mark else None) from None


def dump_yaml(value: Any) -> str:
    """YAML with the keys in their given order."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # eight times as fast in C
    dumped: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100)
    return dumped
