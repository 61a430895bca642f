"""Specs: a name and its arguments in one shell-safe string, `hybrid,fusion=rrf,weight=0.5`.

Systems, readers, judges and models are chosen by a spec. A spec prints as it was read.
"""

from __future__ import annotations

import re
from hashlib import sha256

from msgspec import Struct, structs

from mnemoscope._store.errors import UsageError
from mnemoscope.types import Scalar

_KEY = re.compile(r"[A-Za-z_]\w*")
_LABEL = re.compile(r"([A-Za-z0-9][\w.-]*)=(.*)", re.DOTALL)
_LONGEST_SLUG = 180
"""Characters; file systems allow 255, and callers may append a suffix."""
_NOT_LABELS = ("summary.md", "summary.json", "repeats.json", "attempts.jsonl")
"""Files beside the folders of systems, whose names are the labels."""


class Spec(Struct, frozen=True):
    """What to build: a registered name or `module:Name`, with keyword arguments.

    Arguments stay strings until the parameter's type is known: 1.10 may be a version.
    """

    name: str
    args: dict[str, Scalar] = {}
    label: str = ""
    """The user's name for it; it does not change what is built and is not part of the text."""

    @classmethod
    def labelled(cls, text: str) -> Spec:
        """A spec, or `LABEL=SPEC`: `mine=stdio:python3 adapter.py`."""
        if labelled := _LABEL.fullmatch(text):
            if labelled[1] in _NOT_LABELS or len(labelled[1].encode()) > _LONGEST_SLUG:
                raise UsageError(
                    f"cannot use {labelled[1][:80]!r} as a label: it is the name of a folder, so "
                    f"it has at most {_LONGEST_SLUG} bytes and is not {', '.join(_NOT_LABELS)}"
                )
            return structs.replace(cls.parse(labelled[2]), label=labelled[1])
        label, equals, _ = text.partition("=")
        if equals and not {",", ":"} & set(label):  # else it belongs to the spec
            raise UsageError(
                f"cannot use {label!r} as a label: write letters, digits, '.', '_' and '-', "
                "with an ASCII letter or a digit first"
            )
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> Spec:
        name, *pairs = text.split(",")
        if not name.strip():
            raise UsageError(f"empty name in spec {text!r}; write for example bm25,k1=1.2")
        args: dict[str, Scalar] = {}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            key = key.strip().replace("-", "_")
            if not equals or not _KEY.fullmatch(key):
                raise UsageError(
                    f"cannot read {pair!r} in spec {text!r}; write name,key=value,key=value"
                )
            if key in args:
                raise UsageError(f"{key!r} is given twice in spec {text!r}")
            args[key] = value.strip()
        return cls(name.strip(), args)

    def __str__(self) -> str:
        return ",".join([self.name, *(f"{k}={_print(v)}" for k, v in self.args.items())])

    @property
    def slug(self) -> str:
        """A folder name: the label, or `bm25`, `hybrid,weight=0.5`, `my_pkg.mod-Class`."""
        if self.label:
            return self.label
        plain = re.sub(r"[^A-Za-z0-9_.,=+-]+", "-", str(self)).strip("-.")
        digest = sha256(str(self).encode()).hexdigest()[:8]
        if len(plain) > _LONGEST_SLUG:
            return f"{plain[:_LONGEST_SLUG]}-{digest}"
        return plain or f"system-{digest}"


def parse_scalar(text: str) -> Scalar:
    """A number, true or false; else the text itself."""
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _print(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
