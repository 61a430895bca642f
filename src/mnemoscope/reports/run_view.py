"""What the reports show of a run: its files are read once, here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.checked_run import judges_of
from mnemoscope.analysis.measure import few_clusters
from mnemoscope.metrics import headline as headline_of
from mnemoscope.metrics import installed_metrics, metric_of

Figures = Mapping[str, Any]
"""An object of a run's JSON files, as `analysis` wrote it."""


@dataclass(frozen=True)
class RunView:
    """One run, ready to be shown."""

    label: str
    manifest: Manifest
    metrics: Figures
    timing: Figures
    path: Path
    longitudinal: Figures | None = None
    """The figures of each checkpoint, where the run had checkpoints."""
    answers: Figures | None = None
    """How good the answers are and why they failed, where there are answers."""
    forgetting: Figures | None = None

    @classmethod
    def of(cls, run: RunDirectory) -> RunView:
        names = ("longitudinal", "answers", "forgetting")
        there = (name for name in names if (run.path / f"{name}.json").exists())
        return cls(
            run.label,
            run.manifest(),
            run.read_json("metrics.json"),
            run.read_json("timing.json"),
            run.path,
            **{name: run.read_json(f"{name}.json") for name in there},
        )

    @property
    def is_baseline(self) -> bool:
        return self.manifest.arm

    @property
    def judged(self) -> int:
        """How many answers were judged, over all checkpoints."""
        points = self.longitudinal["checkpoints"] if self.longitudinal else ()
        return sum(point["judged"] for point in points)

    @property
    def paid(self) -> float:
        """What models were paid for this run, in US dollars."""
        accounts = self.timing.get("accounts")
        return float(accounts["total"]["paid"]) if accounts else 0.0

    @property
    def asked_by(self) -> list[str]:
        """Who read, with which prompt, and who judged; empty where there are no answers."""
        identity = self.manifest.identity
        reader = identity.get("reader")
        if not reader:
            return []
        said = ["answers: by the system itself"]
        if isinstance(reader, dict):
            prompt = f", prompt {reader['prompt']}" if "prompt" in reader else ""
            said = [f"answers: {reader['spec']}{prompt}"]
        judges = [own["spec"] for own in map(identity.get, ("judge", "appellate_judge")) if own]
        return [*said, f"judge: {', then '.join(judges) or 'nobody'}"]

    @property
    def exams(self) -> dict[str, Figures | None]:
        """Each judge's spec to how it did in its exam; None for one that took none."""
        return {spec: self.manifest.exams.get(spec) for spec in judges_of(self.manifest)}

    def category_name(self, key: str) -> str:
        name = self.manifest.category_names.get(key)
        return f"{key} {name}" if name else key

    @property
    def benchmark(self) -> str:
        about = self.manifest.identity["benchmark"]
        return dataset_title(about["name"], about["options"])


def dataset_title(name: str, options: Mapping[str, object]) -> str:
    """The dataset and its options as people write them: `locomo (dates=off)`."""
    about = ", ".join(
        f"{key}={('on' if value else 'off') if isinstance(value, bool) else value}"
        for key, value in options.items()
        if value != ""
    )
    return f"{name} ({about})" if about else name


def as_content(views: Sequence[RunView]) -> dict[str, Figures]:
    """All runs by label, for programs."""
    return {
        view.label: {
            **view.metrics,
            "timing": view.timing,
            **({"longitudinal": view.longitudinal} if view.longitudinal else {}),
            **({"answers": view.answers} if view.answers else {}),
            **({"forgetting": view.forgetting} if view.forgetting else {}),
        }
        for view in views
    }


def headline(views: Sequence[RunView]) -> list[str]:
    """The metrics that a table of these runs shows, those they all have."""
    measured = [own for view in views if (own := view.metrics["overall"])]
    shared = (
        [name for name in measured[0] if all(name in own for own in measured)] if measured else []
    )
    chosen = headline_of(shared)
    # Those that are computed at every k, as recall is, and mrr is not.
    kinds = {own.name for own in installed_metrics().values() if own.at == "k" and own.headline}
    at_k = [name for name in shared if name.partition("@")[0] in kinds]
    if not set(at_k) & set(chosen):  # shallow rankings: the deepest that can be shown
        chosen = at_k[-len(kinds) :] + chosen
    return chosen


def no_better_than_no_memory(views: Sequence[RunView]) -> list[str]:
    """Where answers are as good without any memory, they say nothing about memory."""
    silent = next((v for v in views if v.manifest.identity["system"]["spec"] == "none"), None)
    if silent is None or not silent.answers or silent.longitudinal:
        return []
    metric = silent.answers["figures"]["metric"]
    floor = silent.answers["figures"]["answerable"]["mean"]
    as_good = []
    for view in views:
        if view is silent or view.is_baseline or not view.answers or floor is None:
            continue
        own = view.answers["figures"]["answerable"]
        if view.answers["figures"]["metric"] != metric or own["mean"] is None:
            continue
        if (own["ci95"] or [own["mean"]])[0] <= floor:
            as_good.append(view.label)
    if not as_good:
        return []
    return [
        f"without any memory (none) the {metric} is {floor:.3f}, and {', '.join(as_good)} cannot "
        "be told from that: here it says nothing about memory"
    ]


def caveats(view: RunView) -> list[str]:
    """What a reader must know beside the numbers."""
    said = list(view.manifest.notes)
    said += [f"deviates from {view.manifest.protocol['id']}: {d}" for d in view.manifest.deviations]
    if leaks := view.manifest.leaks:
        said.append(f"labels may leak: {leaks} findings of the scan were accepted on request")
    said += restarts(view)
    questions, hits = view.metrics["questions"], view.metrics["hits"]
    if view.longitudinal:
        said += same_days(view.longitudinal)
    else:
        said += few_clusters(questions.get("clusters", 0))
    if failed := questions["scorable"] - questions["measured"]:
        statuses = ", ".join(f"{n} {s}" for s, n in view.metrics["statuses"].items())
        said.append(
            f"{failed:,} of {questions['scorable']:,} questions were not fairly put ({statuses}); "
            f"figures leave them out{_bounds(view.metrics['overall'])}; questions.jsonl says why"
        )
        said += [f"{n:,} times: {error}" for error, n in view.metrics["errors"].items()]
    if hits["merged"]:
        said.append(
            f"{hits['merged']:,} hits stem from several memories and bring them all at once"
        )
    if strange := hits["unknown_ids"]:
        said.append(
            f"{strange:,} of {hits['returned']:,} hits are no memory of their scenario: recall "
            "must return ids that remember was given (raw_retrievals.jsonl has what came)"
        )
    if hits["duplicates"]:
        said.append(f"{hits['duplicates']} repeated hits were removed before scoring")
    reached = view.metrics["ingestion"]["evidence_reached"]
    if reached is not None and reached < 1:
        said.append(f"only {reached:.1%} of the evidence reached the index")
    if unreachable := view.metrics["ingestion"]["evidence_unreachable"]:
        said.append(f"{unreachable} evidence ids exist in no scenario and can never be found")
    return said


def same_days(longitudinal: Figures) -> list[str]:
    """Checkpoints after the end of the history: the same days, asked about again."""
    labels: dict[int, list[str]] = {}
    for point in longitudinal["checkpoints"]:
        labels.setdefault(point["ingested_days"], []).append(point["label"])
    return [
        f"{', '.join(same)} are the same {days:,} days, asked about again"
        for days, same in labels.items()
        if len(same) > 1
    ]


def restarts(view: RunView) -> list[str]:
    """That a system died on the way, whatever became of its questions."""
    number = view.timing.get("counters", {}).get("restarts", 0)
    told = "the system was lost in the middle of a scenario, and lived it again"
    return [f"{number:,} × {told}"] if number else []


def _bounds(overall: Figures) -> str:
    first = [
        name for name in headline_of(list(overall)) if getattr(metric_of(name), "at", "") == "k"
    ]
    for name in (*first, *overall):
        if bounds := overall.get(name, {}).get("bounds"):
            return (
                f", with them as wrong {name} would be {bounds[0]:.3f} instead of {bounds[1]:.3f}"
            )
    return ""
