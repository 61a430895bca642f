"""One sentence a system: whether it finds more than the reference, with the difference."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.against_reference import AgainstReference, against_reference
from mnemoscope.analysis.disclosure_pairs import is_right_metric
from mnemoscope.reports.tables import DIM, Block, Lines, Paragraph
from mnemoscope.text.display import one_line

_WORDS = {
    False: {"more": "finds more than", "less": "finds less than"},
    True: {"more": "answers better than", "less": "answers worse than"},
}
_RIGHT = {"more": "is right more often than", "less": "is right less often than"}
_UNDECIDED = "cannot be told from"


def closing_sentences(runs: Sequence[RunDirectory]) -> list[Block]:
    """The sentences and what their intervals are; empty where nothing can be compared."""
    found = against_reference(runs)
    if not found:
        return []
    blocks: list[Block] = [Paragraph(_in_lines(sentence(one)), "bold") for one in found]
    measured = [one for one in found if one.direction != "not measured"]
    return [*blocks, Paragraph(_legend(measured), DIM)] if measured else blocks


def sentence(one: AgainstReference) -> str:
    """`mine finds less than bm25: recall@10 −0.109 [−0.140, −0.085]`."""
    if one.direction == "not measured":
        return f"{one.label} was not measured: no question can be compared with {one.reference}"
    words = _RIGHT if is_right_metric(one.metric) else _WORDS[one.of_answers]
    said = words.get(one.direction, _UNDECIDED)
    ends = f"[{signed(one.low)}, {signed(one.high)}]"
    return f"{one.label} {said} {one.reference}: {one.metric} {signed(one.delta)} {ends}"


def _in_lines(text: str, width: int = 80) -> str:
    """The sentence in two lines if it is long, so that no interval is broken."""
    text = one_line(text)
    said, colon, figures = text.rpartition(": ")
    return Lines(f"{said}:\n  {figures}") if colon and len(text) > width else text


def signed(value: float) -> str:
    """Three digits with a sign; zero has none."""
    text = f"{value:+.3f}".replace("-", "−")
    return "0.000" if text in ("+0.000", "−0.000") else text


def _legend(found: Sequence[AgainstReference]) -> str:
    """What the intervals hold for."""
    parts = ["paired by question, 95 % interval"]
    if found[0].systems > 1:
        parts.append(f"for {found[0].systems} systems together")
    few = min(one.clusters for one in found)
    if any(one.these_only for one in found):
        named = "this conversation" if few == 1 else f"these {few} conversations"
        parts.append(f"on {named} only; it says nothing of others")
    return ", ".join(parts)
