"""A finished run as `verify` reads it: its manifest, trials and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mnemoscope._store.run_directory import JournalLine, Manifest, RunDirectory
from mnemoscope._store.seal import BLOCKED_FILE as BLOCKED_FILE
from mnemoscope.analysis.label_access import GATE, IsolationFinding, check_isolation
from mnemoscope.analysis.measure import Depth, Metrics, measure
from mnemoscope.protocols import Benchmark, Chosen, Protocol
from mnemoscope.types import FAILED, Ingestion, Trial


@dataclass(frozen=True)
class CheckedRun:
    """The run that the gates check. Its journal is read once, on first use."""

    run: RunDirectory
    manifest: Manifest
    chosen: Chosen | None
    rules: Benchmark | None
    journal: Sequence[JournalLine] | None = None
    """The lines of the journal, if they were read before."""
    _baselines: dict[str, CheckedRun] = field(default_factory=dict, init=False, compare=False)

    @property
    def protocol(self) -> Protocol:
        assert self.chosen is not None, "this gate needs a protocol"
        return self.chosen.protocol

    @property
    def depth(self) -> int:
        return int(self.manifest.identity["depth"])

    @cached_property
    def trials(self) -> list[Trial]:
        return [line for line in self._last if isinstance(line, Trial)]

    @cached_property
    def ingestions(self) -> list[Ingestion]:
        return [line for line in self._last if isinstance(line, Ingestion)]

    @cached_property
    def _last(self) -> list[JournalLine]:
        last = self.manifest.checkpoints[-1] if self.manifest.checkpoints else ""
        journal = self.run.journal() if self.journal is None else self.journal
        return [line for line in journal if line.checkpoint == last]

    @cached_property
    def scorable(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.evidence]

    @cached_property
    def measured(self) -> list[Trial]:
        return [trial for trial in self.scorable if trial.status not in FAILED]

    def baseline(self, name: str) -> CheckedRun:
        """The run of a baseline in the same folder, for all gates that read it; may be edited."""
        own = self.run.path.resolve()
        if (folder := own.parent / name) == own:
            return self
        if name not in self._baselines:
            run = RunDirectory(folder, checked=False)
            self._baselines[name] = CheckedRun(run, run.manifest(), self.chosen, self.rules)
        return self._baselines[name]

    @cached_property
    def isolation(self) -> IsolationFinding:
        demanded = self.chosen is not None and GATE in self.protocol.gates
        return check_isolation(self.run, self.manifest, self.trials, demanded=demanded)

    @cached_property
    def figures(self) -> Metrics:
        """metrics.json, recomputed from the journal.

        Only `recorded_depth` is taken from the file, since the journal does not contain it.
        """
        beyond = self.run.read_json("metrics.json").get("recorded_depth", 0)
        depth = Depth(self.depth, beyond)
        return measure(self.trials, self.ingestions, depth, withheld=self.manifest.withheld)


def value_at(manifest: Manifest, path: str) -> Any:
    """Return the value at a dotted path of the manifest; None if it is missing."""
    first, *rest = path.split(".")
    value = getattr(manifest, first, None)
    for key in rest:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def blocked_reason(run: RunDirectory) -> str:
    """Return the reasons in BLOCKED.md; empty if the file does not exist."""
    file = run.path / BLOCKED_FILE
    if not file.exists():
        return ""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    reasons = [line.lstrip("- ").strip() for line in lines if line.strip() and line[0] != "#"]
    return "; ".join(reasons) or f"{BLOCKED_FILE} exists without a reason"


def judges_of(manifest: Manifest) -> list[str]:
    """Return the specs of all judges of the run: panel members and the appellate judge included."""
    found: list[str] = []
    for role in ("judge", "appellate_judge"):
        if about := manifest.identity.get(role):
            found += about.get("panel") or [about["spec"]]
    return found
