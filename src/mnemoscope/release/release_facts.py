"""The figures of a release's runs and the state of the runs, to check a text against.

The ends of intervals are not checked, because they depend on the method. A number agrees if it is
a rounded figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.comparison import OVERALL, Comparison, Row
from mnemoscope.release.claim_patterns import PValue, estimates, metrics, p_values
from mnemoscope.release.decide import (
    comparisons,
    guard,
    margins,
    regressions,
    row_name,
    standing,
    worsened,
)
from mnemoscope.release.state import Release, RunRecord
from mnemoscope.release.statements import Segment, Statement

_POINTS = re.compile(r"pp|points?", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w:/])(?:\.{0,2}/)?[\w.+,=-]+(?:/[\w.+,=-]+)+/?")
_HEX = re.compile(r"\b[0-9a-f]{12,64}\b")


def matches(name: str, metric: str) -> bool:
    """`mrr` in a text means any mrr@k, `recall` any recall@k."""
    return name == metric or ("@" not in name and metric.startswith(f"{name}@"))


class Facts:
    """Levels, differences, p-values, and the state of the runs."""

    def __init__(self, release: Release, found: Sequence[Comparison]) -> None:
        self.protocol = release.protocol
        self.found = found
        self.runs = {release.run(record).path: record for record in release.records()}
        self.states = {path: _status(path) for path in self.runs}
        self._rows = [row for one in found for row in one.rows]
        self._levels = [(row.metric, value) for row in self._rows for value in (row.base, row.cand)]
        for path in self.runs:
            recorded = RunDirectory(path).read_json("metrics.json")
            for scope in (recorded[OVERALL], *recorded["by_category"].values()):
                self._levels += [(m, f["mean"]) for m, f in scope.items() if "mean" in f]

    @classmethod
    def of(cls, release: Release) -> Facts:
        return cls(release, comparisons(release))

    @property
    def unsound(self) -> dict[Path, str]:
        return {path: state for path, state in self.states.items() if state != "VERIFIED"}

    @property
    def improved(self) -> set[str]:
        rows = (row for row in self._rows if row.scope == OVERALL)
        return {row.metric for row in rows if standing(row) == "improved"}

    @property
    def worsened(self) -> list[str]:
        """Every metric with a lower mean, overall or in a category, significant or not."""
        return [what for one in self.found for what in map(row_name, worsened(one))]

    @property
    def regressed(self) -> list[str]:
        return [what for one in self.found for what in regressions(one)]

    @property
    def within_margin(self) -> bool:
        """Whether every benchmark shows that no metric fell by more than its margin."""
        return all(
            guard(one, margins(self.protocol.benchmark(one.benchmark)))
            == "no regression within the margin"
            for one in self.found
        )

    def doubts(self, segment: Segment) -> list[str]:
        """The metrics that the segment claims as improved and the runs do not show as such."""
        if foreign := self._foreign(segment.names):
            return foreign
        in_category = "categor" in segment.text.lower()
        named = [one for one in self.found if one.benchmark.lower() in segment.text.lower()]
        doubted = []
        for one in named or self.found:
            for row in one.rows:
                if (row.scope == OVERALL) == in_category or standing(row) == "improved":
                    continue
                if any(matches(name, row.metric) for name in segment.names):
                    place = one.benchmark if row.scope == OVERALL else f"category {row.scope}"
                    doubted.append(f"{row.metric} on {place} has p={row.p:.4f}")
        strange = self.strange(segment.names, segment.text)
        return doubted or [f"no run gave {said}" for said in strange]

    def row_doubts(self, names: Sequence[str], category: str) -> list[str]:
        """The metrics that a row claims as improved and the runs do not show as such."""
        if foreign := self._foreign(names):
            return foreign
        return [
            f"{row.metric} has p={row.p:.4f}"
            for row in self._of(names)
            if standing(row) != "improved" and f"{category or OVERALL} ".startswith(f"{row.scope} ")
        ]

    def strange(self, names: Sequence[str], text: str) -> list[str]:
        """The figures and p-values of a text that are not in the runs for these metrics."""
        said = [n[0].strip() for n in estimates(text) if not self.has(names, n[0])]
        return said + [f"p={p.value:g}" for p in p_values(text) if not self.allows(names, p)]

    def has(self, names: Sequence[str], figure: str, points: bool = False) -> bool:
        """Whether a run has the figure; with `points` a bare number is in points, not a share."""
        digits = re.sub(r"[^\d.]", "", figure)
        slack = 0.51 * 10 ** -len(digits.partition(".")[2])
        return any(abs(float(digits) - one) <= slack for one in self._like(names, figure, points))

    def allows(self, names: Sequence[str], p: PValue) -> bool:
        """Whether the p is not smaller than in the runs; a larger one claims less."""
        given = [row.p for row in self._of(names)]
        return not given or any(one <= p.value + p.slack for one in given)

    def _foreign(self, names: Sequence[str]) -> list[str]:
        """The metrics that the protocol does not have."""
        chosen_later = "is not a metric of the protocol: it was chosen afterwards"
        return [f"{name} {chosen_later}" for name in names if not self._of([name])]

    def _of(self, names: Iterable[str]) -> list[Row]:
        return [row for row in self._rows if any(matches(name, row.metric) for name in names)]

    def _like(self, names: Sequence[str], figure: str, points: bool) -> Iterator[float]:
        """All known values in the figure's unit."""
        percent = "%" in figure or "percent" in figure.lower()
        rows = self._of(names)
        differences = [abs(row.delta) for row in rows]
        if points or _POINTS.search(figure):
            yield from (100 * one for one in differences)
            return
        levels = [value for metric, value in self._levels if any(matches(n, metric) for n in names)]
        scale = 100 if percent else 1
        yield from (scale * one for one in [*levels, *differences])
        if percent:
            yield from (100 * abs(row.delta) / row.base for row in rows if row.base)


def cited_runs(
    said: Sequence[Statement],
    folder: Path,
    known: Mapping[Path, RunRecord],
    states: Mapping[Path, str],
) -> Iterator[tuple[Path, int, str]]:
    """Runs that are cited although they are not VERIFIED, with line and state.

    A text may state that a run is BLOCKED, UNVERIFIED or CONSISTENT; it may not quote its numbers.
    `states` has the known states. Each run is reported once, also if its path is written in several
    ways.
    """
    states = {path.resolve(): state for path, state in states.items()}
    reported = set[Path]()
    for one in said:
        for path in _runs(one.text, folder, known):
            context = " ".join(s.text for s in said if s.block == one.block and s.kind == one.kind)
            if one.kind == "row":
                context = one.text
            if path not in states:
                states[path] = _status(path)
            disclosed = states[path] in context and not (metrics(context) and estimates(context))
            if states[path] != "VERIFIED" and not disclosed and path not in reported:
                reported.add(path)
                yield path, one.line, states[path]


def _runs(text: str, folder: Path, known: Mapping[Path, RunRecord]) -> set[Path]:
    found = set()
    for token in _PATH.findall(text):
        named = token.rstrip("/.,")
        for root in (folder, Path.cwd()):
            for place in (root / named, (root / named).parent):
                with suppress(OSError):  # a name that is too long for a path
                    if (place / "manifest.json").is_file():
                        found.add(place.resolve())
    for prefix in _HEX.findall(text):
        found |= {
            path.resolve() for path, run in known.items() if run.fingerprint.startswith(prefix)
        }
    return found


def _status(path: Path) -> str:
    """VERIFIED, CONSISTENT, UNVERIFIED or BLOCKED."""
    from mnemoscope.analysis.verify import verify

    return str(verify(RunDirectory(path)).status)
