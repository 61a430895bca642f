"""YAML 1.2: dates stay strings, `no` and `on` are strings, 012 is twelve.

PyYAML implements YAML 1.1, which turns `2026-05-10` into a date and `off` into False. Here only
true, false, null and numbers are not strings. Files that would end the process are refused.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import printable, read_text

_DEEPEST = 100
_MOST_VALUES = 1_000_000
_UNUSUAL = re.compile(
    r"^ {50}|^(?:[ \t]*[-?:][ \t]+){25}"  # deep nesting by indentation, or in one line
    r"|(?:^|[\s\[{,:-])[&*][^\s&*]|\\[uU]",  # anchors, aliases and escaped characters
    re.MULTILINE,
)


@cache
def _loader() -> Any:
    """The safe loader, in C if PyYAML has it, without the implicit types of YAML 1.1."""
    import yaml  # every run imports this module, and few runs read YAML

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for tag, pattern, first in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
        ("int", r"[-+]?[0-9]+", "-+0123456789"),
        ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ):
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), list(first)
        )
    for tag, kind in (("int", int), ("float", float)):
        Loader.add_constructor(
            f"tag:yaml.org,2002:{tag}",
            lambda loader, node, kind=kind: kind(loader.construct_scalar(node)),
        )
    return Loader


def load_yaml(path: Path) -> Any:
    return parse_yaml(read_text(path), path)


def parse_yaml(text: str, path: Path) -> Any:
    """The document as dicts, lists and scalars; a syntax error names the line."""
    import yaml

    try:
        if text.count("[") + text.count("{") > _DEEPEST or _UNUSUAL.search(text):
            _check(text, path)
        return yaml.load(text, Loader=_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise DataError(problem, file=path, line=mark.line + 1 if mark else None) from None
    # A value that does not fit its tag, such as `!!int x` or a number of 5,000 digits.
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"a value cannot be read: {error}", file=path) from None


def _check(text: str, path: Path) -> None:
    """Refuse what would end the process, take hours, or not be writable as UTF-8.

    The loader recurses in C without a limit, and a few lines of aliases can stand for billions of
    values. Events are read without recursion. A value without an alias takes a character at least,
    so a long file may have as many values as characters.
    """
    import yaml

    most = max(_MOST_VALUES, len(text))
    sizes: dict[str, int] = {}
    nested: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=_loader()):
        line = event.start_mark.line + 1
        anchor, size = getattr(event, "anchor", None), 1
        if isinstance(event, yaml.CollectionStartEvent):
            if len(nested) > _DEEPEST:
                raise DataError(f"is nested more than {_DEEPEST} deep", file=path, line=line)
            nested.append((anchor, 1))
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = nested.pop()
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:  # unknown, or around the alias
                raise DataError(
                    f"*{event.anchor} contains itself or is unknown", file=path, line=line
                )
            anchor, size = None, sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            if printable(event.value) != event.value:
                raise DataError("half of a surrogate pair is not a character", file=path, line=line)
        else:
            continue
        if anchor:
            sizes[anchor] = size
        outer, total = nested.pop()
        if total + size > most:
            raise DataError(f"has more than {most:,} values", file=path, line=line)
        nested.append((outer, total + size))


def dump_yaml(value: Any) -> str:
    """YAML with the keys in their given order."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # eight times as fast in C
    dumped: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100)
    return dumped
