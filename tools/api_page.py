"""The page docs/reference/api.md: public functions and types, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import msgspec
from tools.schemas import field_docs

_PARAMETERS = "Parameters\n----------\n"


def api_reference(notice: str) -> str:
    """Functions first, then what they return, then the other types."""
    import mnemoscope
    from mnemoscope import results

    public = [(name, getattr(mnemoscope, name)) for name in mnemoscope.__all__]
    shown = [one for one in public if inspect.isfunction(one[1])]
    shown += [(name, getattr(results, name)) for name in ("Results", "RunResult", "Frame")]
    shown += [("ComparisonResult", results.ComparisonResult), ("GateResult", results.GateResult)]
    shown += [one for one in public if inspect.isclass(one[1])]
    lines = ["# Python API", "", notice]
    for name, thing in shown:
        lines += [f"## {name}", ""]
        if not inspect.isclass(thing):
            lines += ["```python", f"{name}(\n{_arguments(thing)})", "```", ""]
        lines += [*_docstring(inspect.cleandoc(thing.__doc__ or "")), ""]
        if inspect.isclass(thing):
            lines += [*_fields(thing), *_members(thing), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _arguments(function: object) -> str:
    told, stars = "", True
    for one in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        if one.kind is one.KEYWORD_ONLY and stars:
            told, stars = told + "    *,\n", False
        default = "" if one.default is one.empty else f" = {one.default!r}"
        before = "**" if one.kind is one.VAR_KEYWORD else ""
        told += f"    {before}{one.name}: {one.annotation}{default},\n"
    return told


def _docstring(text: str) -> Iterator[str]:
    """The text, with a section of parameters as a table."""
    before, _, parameters = text.partition(_PARAMETERS)
    yield before.strip()
    if parameters:
        yield from ("", "| parameter | meaning |", "|---|---|")
        for name, told in re.findall(r"^(\w+)\n((?:    .*\n?)+)", parameters, re.MULTILINE):
            yield f"| `{name}` | {' '.join(told.split())} |"


def _fields(kind: type) -> Iterator[str]:
    """A table of the fields of a struct."""
    if not issubclass(kind, msgspec.Struct):
        return
    told, types = field_docs(kind), inspect.get_annotations(kind)
    optional = len(kind.__struct_defaults__)
    required = kind.__struct_fields__[: len(kind.__struct_fields__) - optional]
    yield from ("", "| field | type | meaning |", "|---|---|---|")
    for name in kind.__struct_fields__:
        needed = " (required)" if name in required else ""
        # A bar would end the cell of the table.
        annotation = str(types[name]).replace(" | ", " or ")
        yield f"| `{name}`{needed} | `{annotation}` | {told.get(name, '')} |"
    yield ""


def _members(kind: type) -> Iterator[str]:
    """The public methods and properties, one line each."""
    for member, what in vars(kind).items():
        about = getattr(what, "__doc__", None) or getattr(what, "func", None)
        is_public = not member.startswith("_") and about is not None
        if is_public and (callable(what) or isinstance(what, property)):
            yield f"- `{member}`: {' '.join((what.__doc__ or '').split())}"
