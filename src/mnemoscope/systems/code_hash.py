"""The hash of code that has no source file, such as a class defined in a notebook."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import CodeType
from typing import Any

from mnemoscope.types import Scalar


def code_sha256(target: Any) -> str:
    """The hash of the bytecode of a function or of a class with its bases; empty if it has none.

    File names and line numbers do not count: a notebook changes them for the same cell.
    """
    parts = list(_parts(target))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if parts else ""


def _parts(target: Any) -> Iterator[str]:
    if isinstance(target, type):
        for base in target.__mro__[:-1]:
            for name, member in sorted(vars(base).items(), key=lambda item: item[0]):
                if isinstance(member, Scalar) and not name.startswith("__"):
                    yield f"{name}={member!r}"
                yield from _parts(getattr(member, "__func__", getattr(member, "fget", member)))
    elif isinstance(code := getattr(target, "__code__", None), CodeType):
        yield repr([one for one in target.__defaults__ or () if isinstance(one, Scalar | None)])
        yield from _code_parts(code)


def _code_parts(code: CodeType) -> Iterator[str]:
    yield from (code.co_code.hex(), repr(code.co_names), repr(code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
