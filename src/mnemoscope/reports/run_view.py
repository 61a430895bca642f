"""What the reports show of a run: read once, named once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.gates import judges_of
from mnemoscope.analysis.measure import few_clusters
from mnemoscope.metrics import headline as headline_of
from mnemoscope.metrics import installed_metrics, metric_of

_JUDGES = ("judge", "appellate_judge")


@dataclass(frozen=True)
class RunView:
    """One run, ready to be shown."""

    label: str
    manifest: Manifest
    metrics: dict[str, Any]
    timing: dict[str, Any]
    path: Path
    life: dict[str, Any] | None = None
    """The figures of each checkpoint of a life, where it was one."""
    answers: dict[str, Any] | None = None
    """What the answers are worth and why they failed, where somebody answered."""
    forgetting: dict[str, Any] | None = None

    @classmethod
    def of(cls, run: RunDirectory) -> RunView:
        manifest = run.manifest()
        return cls(
            run.label,
            manifest,
            run.read_json("metrics.json"),
            run.read_json("timing.json"),
            run.path,
            *(_optional(run, name) for name in ("longitudinal", "answers", "forgetting")),
        )

    @property
    def is_arm(self) -> bool:
        return self.manifest.arm

    @property
    def judged(self) -> int:
        """How many answers were judged, over all checkpoints."""
        return sum(point["judged"] for point in self.life["checkpoints"]) if self.life else 0

    @property
    def overall(self) -> dict[str, Any]:
        found: dict[str, Any] = self.metrics["overall"]
        return found

    @property
    def paid(self) -> float:
        """What models were paid for this run, in US dollars."""
        accounts = self.timing.get("accounts")
        return float(accounts["total"]["paid"]) if accounts else 0.0

    @property
    def asked_by(self) -> list[str]:
        """Who read, with which prompt, and who judged; empty where nobody answered."""
        identity = self.manifest.identity
        reader = identity.get("reader")
        if not reader:
            return []
        said = ["answers: by the system itself"]
        if isinstance(reader, dict):
            prompt = f", prompt {reader['prompt']}" if "prompt" in reader else ""
            said = [f"answers: {reader['spec']}{prompt}"]
        judges = [about["spec"] for about in map(identity.get, _JUDGES) if about]
        return [*said, f"judge: {', then '.join(judges) or 'nobody'}"]

    @property
    def exams(self) -> dict[str, dict[str, Any] | None]:
        """Each judge's spec to how it did in its exam; None for one that took none."""
        return {spec: self.manifest.exams.get(spec) for spec in judges_of(self.manifest)}

    def category_name(self, key: str) -> str:
        name = self.manifest.category_names.get(key)
        return f"{key} {name}" if name else key

    @property
    def benchmark(self) -> str:
        about = self.manifest.identity["benchmark"]
        options = ", ".join(f"{k}={plain(v)}" for k, v in about["options"].items() if v != "")
        return f"{about['name']} ({options})" if options else str(about["name"])


def _optional(run: RunDirectory, name: str) -> dict[str, Any] | None:
    """A file that only some runs have."""
    there = (run.path / f"{name}.json").exists()
    return run.read_json(f"{name}.json") if there else None


def as_content(views: Sequence[RunView]) -> dict[str, Any]:
    """All runs by label, for machines."""
    return {
        view.label: {
            **view.metrics,
            "timing": view.timing,
            **({"longitudinal": view.life} if view.life else {}),
            **({"answers": view.answers} if view.answers else {}),
            **({"forgetting": view.forgetting} if view.forgetting else {}),
        }
        for view in views
    }


def headline(views: Sequence[RunView]) -> list[str]:
    """The metrics that a table of these runs shows, those they all have."""
    measured = [view.overall for view in views if view.overall]
    shared = (
        [name for name in measured[0] if all(name in own for own in measured)] if measured else []
    )
    chosen = headline_of(shared)
    if not _at_k(chosen):  # shallow rankings: the deepest that can be shown
        kinds = {own.name for own in installed_metrics().values() if own.at == "k" and own.headline}
        chosen = [name for name in shared if name.partition("@")[0] in kinds][
            -len(kinds) :
        ] + chosen
    return chosen


def _at_k(names: Sequence[str]) -> list[str]:
    """Those that are computed at every k, as recall is, and mrr is not."""
    return [name for name in names if (own := metric_of(name)) is not None and own.at == "k"]


def chances(views: Sequence[RunView], names: Sequence[str]) -> list[float | None]:
    """What chance alone would get, by the run that has most questions to tell from."""
    fullest = max(views, key=lambda view: view.metrics["questions"]["measured"])
    return [fullest.overall.get(name, {}).get("chance") for name in names]


def vacuous(views: Sequence[RunView], names: Sequence[str]) -> list[str]:
    """Which of these metrics say nothing on this data, by construction."""
    return [
        name for name in names if any(view.overall.get(name, {}).get("vacuous") for view in views)
    ]


def no_better_than_no_memory(views: Sequence[RunView]) -> list[str]:
    """Where answers are as good without any memory, they say nothing about memory."""
    silent = next((v for v in views if v.manifest.identity["system"]["spec"] == "none"), None)
    if silent is None or not silent.answers or silent.life:
        return []
    floor, metric = _headline(silent)
    as_good = [
        view.label
        for view in views
        if view is not silent and view.answers and not view.is_arm and floor is not None
        if (own := _headline(view)) and own[1] == metric and _not_above(view, floor)
    ]
    if not as_good:
        return []
    return [
        f"without any memory (none) the {metric} is {floor:.3f}, and {', '.join(as_good)} cannot "
        "be told from that: here it says nothing about memory"
    ]


def _headline(view: RunView) -> tuple[float | None, str]:
    figures = (view.answers or {})["figures"]
    return figures["answerable"]["mean"], figures["metric"]


def _not_above(view: RunView, floor: float) -> bool:
    figure = (view.answers or {})["figures"]["answerable"]
    return figure["mean"] is not None and bool((figure["ci95"] or [figure["mean"]])[0] <= floor)


def caveats(view: RunView) -> list[str]:
    """What a reader must be told beside the numbers."""
    said = list(view.manifest.notes)
    said += [f"deviates from {view.manifest.protocol['id']}: {d}" for d in view.manifest.deviations]
    if leaks := view.manifest.leaks:
        said.append(f"labels may leak: {leaks} findings of the scan were accepted on request")
    said += losses(view)
    questions = view.metrics["questions"]
    said += same_days(view.life) if view.life else few_clusters(questions.get("clusters", 0))
    failed = questions["scorable"] - questions["measured"]
    if failed:
        statuses = ", ".join(f"{n} {s}" for s, n in view.metrics["statuses"].items())
        said.append(
            f"{failed:,} of {questions['scorable']:,} questions were not fairly put ({statuses}); "
            f"figures leave them out{_bounds(view)}; questions.jsonl says why"
        )
        said += [f"{n:,} times: {error}" for error, n in view.metrics["errors"].items()]
    hits = view.metrics["hits"]
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


def same_days(life: Mapping[str, Any]) -> list[str]:
    """That checkpoints lie beyond the end of the life: the same days, asked about again."""
    labels: dict[int, list[str]] = {}
    for point in life["checkpoints"]:
        labels.setdefault(point["ingested_days"], []).append(point["label"])
    return [
        f"{', '.join(same)} are the same {days:,} days, asked about again"
        for days, same in labels.items()
        if len(same) > 1
    ]


def losses(view: RunView) -> list[str]:
    """That a system died on the way, whatever became of its questions."""
    number = view.timing.get("counters", {}).get("restarts", 0)
    told = "the system was lost in the middle of a scenario, and lived it again"
    return [f"{number:,} × {told}"] if number else []


def _bounds(view: RunView) -> str:
    for name in (*_at_k(headline_of(list(view.overall))), *view.overall):
        if bounds := view.overall.get(name, {}).get("bounds"):
            return (
                f", with them as wrong {name} would be {bounds[0]:.3f} instead of {bounds[1]:.3f}"
            )
    return ""


def plain(value: object) -> str:
    """An option's value as people write it."""
    return (
        {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )
