"""English nouns of the same meaning: a list of our own, then close neighbours of a word."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from mnemoscope.drafting.word_neighbours import WordNeighbours

_ENDS_WITH_ES = ("s", "x", "z", "ch", "sh")


def synonyms(word: str, neighbours: WordNeighbours | None = None) -> list[str]:
    """Nouns that may stand for this one, in the same number; empty if none is known."""
    found = _listed().get(word.lower(), ())
    if found or neighbours is None:
        return list(found)
    return neighbours.close(word)


@cache
def _listed() -> dict[str, tuple[str, ...]]:
    """Each listed noun, and each plural, to its synonyms."""
    found: dict[str, tuple[str, ...]] = {}
    text = files("mnemoscope.drafting").joinpath("synonyms.txt").read_text("utf-8")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        (one, many), *others = map(_forms, line.split())
        found.setdefault(one, tuple(single for single, _ in others))
        if many and many != one:
            plurals = tuple(plural for _, plural in others if plural)
            if plurals:
                found.setdefault(many, plurals)
    return found


def _forms(entry: str) -> tuple[str, str]:
    """The singular and the plural; a noun without a plural has an empty one."""
    single, mark, plural = entry.replace("_", " ").partition(">")
    if mark:
        return single, plural
    if single.endswith("y") and single[-2] not in "aeiou":
        return single, f"{single[:-1]}ies"
    return single, f"{single}{'es' if single.endswith(_ENDS_WITH_ES) else 's'}"
