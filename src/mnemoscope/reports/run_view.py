"""Read the files of a run once, for all its reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemoscope._store.run_directory import Manifest, RunDirectory, declared_repeat
from mnemoscope._store.run_integrity import is_protected
from mnemoscope.analysis.answers import AnswerSheet, entitled_sheet, raw_sheet
from mnemoscope.analysis.answers import headline_of as headline_of_answers
from mnemoscope.analysis.attempts import Attempts, attempts_of
from mnemoscope.analysis.checked_run import judges_of
from mnemoscope.analysis.credit import CreditFigures
from mnemoscope.analysis.disclosure_rates import without_answers
from mnemoscope.analysis.entitled import same_family, withheld
from mnemoscope.analysis.estimates import few_clusters
from mnemoscope.analysis.forgetting import Forgetting
from mnemoscope.analysis.hallucination import HallucinationViews
from mnemoscope.analysis.label_access import isolation_caveat
from mnemoscope.analysis.longitudinal import LongitudinalFigures
from mnemoscope.analysis.measure import Metrics, withheld_note
from mnemoscope.analysis.repeats import repeat_caveat
from mnemoscope.analysis.system_groups import SystemGroups, groups_or_reason
from mnemoscope.metrics import headline as headline_of
from mnemoscope.metrics import installed_metrics, metric_of
from mnemoscope.types import Reviewed

if TYPE_CHECKING:
    from mnemoscope.analysis.foreign_verdicts import ImportedAnswers

Figures = Mapping[str, Any]
"""An object from a run's JSON files."""
_NOT_SHOWN = ("asked",)
"""Options of a dataset that are too long to be shown: the ids of the questions asked elsewhere."""
_JUDGE_LATER = "`mnemoscope judge RUN --judge JUDGE` judges the answers that were kept"
RESTARTED = (
    "{:,} × the system was lost in the middle of a conversation; the conversation was ingested "
    "again from the start"
)


class CheckpointReport(LongitudinalFigures):
    """The content of longitudinal.json."""

    hallucination: HallucinationViews
    errors: dict[str, int]


@dataclass(frozen=True)
class RunView:
    """One run, read for its reports."""

    label: str
    is_baseline: bool
    benchmark: str
    """The dataset and its options."""
    manifest: Manifest
    metrics: Metrics
    timing: Figures
    path: Path
    restarts: int
    """How often the system crashed or hung and was started again."""
    longitudinal: CheckpointReport | None = None
    """The figures of each checkpoint, if the run had checkpoints."""
    answers: AnswerSheet | None = None
    """How good the answers are and why they failed, if there are answers."""
    forgetting: Forgetting | None = None
    imported: ImportedAnswers | None = None
    """Where the answers came from, if they were given elsewhere."""
    attempts: Attempts | None = None
    """How often the run was tried, if the ledger of attempts knows it."""
    is_protected: bool = True
    """Whether an edit of its files would be found."""

    @classmethod
    def of(cls, run: RunDirectory, *, raw: bool = False) -> RunView:
        """With `raw`, figures of a judge that passed no exam are shown, too."""
        manifest = run.manifest()
        names = ("longitudinal", "answers", "forgetting", "imported")
        there = (name for name in names if (run.path / f"{name}.json").exists())
        about, timing = manifest.identity["benchmark"], run.read_json("timing.json")
        found = {name: run.read_json(f"{name}.json") for name in there}
        metrics: Metrics = run.read_json("metrics.json")
        if "disclosure" in metrics and withheld(manifest) and not raw:
            metrics["disclosure"] = without_answers(metrics["disclosure"])
        if "answers" in found:
            sheet = entitled_sheet(found["answers"], manifest)
            found["answers"] = raw_sheet(sheet) if raw else sheet
        return cls(
            run.label,
            manifest.arm,
            dataset_title(about["name"], about["options"]),
            manifest,
            metrics,
            timing,
            run.path,
            timing.get("counters", {}).get("restarts", 0),
            **found,
            attempts=attempts_of(run.path, manifest),
            is_protected=is_protected(run.path, manifest),
        )

    @property
    def title(self) -> str:
        """The label; of an integration also what it is: `mem0, no LLM, wordllama`."""
        system = self.manifest.identity["system"]
        name = system.get("shelf")
        if not name:
            return self.label
        model = _model_name(system.get("model")) or "no LLM"
        about = ", ".join(filter(None, [name, model, _model_name(system.get("embedder"))]))
        named = self.label == name or self.label.startswith(f"{name},")
        return f"{self.label}{about.removeprefix(name)}" if named else f"{self.label} ({about})"

    @property
    def judged(self) -> int:
        """The number of judged answers over all checkpoints."""
        points = self.longitudinal["checkpoints"] if self.longitudinal else ()
        return sum(point["judged"] for point in points)

    @property
    def reader_and_judge(self) -> list[str]:
        """The reader, its prompt and the judges; empty for a run without answers."""
        identity = self.manifest.identity
        reader = identity.get("reader")
        if not reader:
            return []
        answers = "by the system itself"
        if outside := identity["system"].get("answers_file"):
            answers = f"from outside, read from {outside}"
        if isinstance(reader, dict):
            prompt = f", prompt {reader['prompt']}" if "prompt" in reader else ""
            answers = f"{reader['spec']}{prompt}"
        judges = [own["spec"] for own in map(identity.get, ("judge", "appellate_judge")) if own]
        # Without hits, as from Recall Bench's adapters, only a judge could measure anything.
        is_measured = self.metrics["questions"]["scorable"] or self.imported
        alone = "none" if is_measured else f"none, so nothing is measured: {_JUDGE_LATER}"
        return [f"answers: {answers}", f"judge: {', then '.join(judges) or alone}"]

    @property
    def exams(self) -> dict[str, Figures | None]:
        """Each judge's spec with its exam result; None if it took no exam."""
        return {spec: self.manifest.exams.get(spec) for spec in judges_of(self.manifest)}

    def category_name(self, key: str) -> str:
        name = self.manifest.category_names.get(key)
        return f"{key} {name}" if name else key


def _model_name(identity: object) -> str:
    """The short name of a model or embedder by its identity."""
    if not isinstance(identity, dict):
        return str(identity or "")
    name = str(identity.get("name") or identity.get("model") or "")
    return name.split()[0] if name else ""


def dataset_title(name: str, options: Mapping[str, object]) -> str:
    """The dataset and its options: `locomo (dates=off)`."""
    about = ", ".join(
        f"{key}={('on' if value else 'off') if isinstance(value, bool) else value}"
        for key, value in options.items()
        if value != "" and key not in _NOT_SHOWN
    )
    return f"{name} ({about})" if about else name


def groups_of(views: Sequence[RunView]) -> SystemGroups | str | None:
    """The groups of systems by their rankings, the reason why there are none, or None."""
    ranked = [view for view in views if view.metrics["overall"]]
    # The views were read from checked runs.
    return groups_or_reason([RunDirectory(view.path, checked=False) for view in ranked])


def as_content(views: Sequence[RunView]) -> dict[str, dict[str, object]]:
    """The content of summary.json: each run's figures by its label."""
    groups: dict[str, Figures] = {}
    for benchmark in dict.fromkeys(view.benchmark for view in views):
        groups |= _group_content([view for view in views if view.benchmark == benchmark])
    return {
        view.label: {
            **view.metrics,
            "timing": view.timing,
            **({"longitudinal": view.longitudinal} if view.longitudinal else {}),
            **({"answers": view.answers} if view.answers else {}),
            **({"forgetting": view.forgetting} if view.forgetting else {}),
            **({"group": groups[view.label]} if view.label in groups else {}),
        }
        for view in views
    }


def _group_content(views: Sequence[RunView]) -> dict[str, Figures]:
    """Letters and ranks of each system by its label; empty without groups."""
    found = groups_of(views)
    if not isinstance(found, SystemGroups):
        return {}
    about = {"metric": found.metric, "questions": found.questions, "these_only": found.these_only}
    return {
        one.system: {
            **about,
            "letters": one.letters,
            "ranks": list(one.ranks),
            "is_best": one.is_best,
        }
        for one in found.systems
    }


def headline(views: Sequence[RunView]) -> list[str]:
    """The metrics that a table of these runs shows; all runs have them."""
    measured = [own for view in views if (own := view.metrics["overall"])]
    shared = (
        [name for name in measured[0] if all(name in own for own in measured)] if measured else []
    )
    chosen = headline_of(shared)
    # Metrics that are computed at every k, such as recall. mrr is not.
    kinds = {own.name for own in installed_metrics().values() if own.at == "k" and own.headline}
    at_k = [name for name in shared if name.partition("@")[0] in kinds]
    if not set(at_k) & set(chosen):  # short rankings: show the largest k
        chosen = at_k[-len(kinds) :] + chosen
    return chosen


def answer_metric(views: Sequence[RunView]) -> str:
    """The metric by which the answers of all runs were graded; empty without a common one."""
    names = {
        view.answers["figures"]["metric"] if view.answers and not view.longitudinal else ""
        for view in views
    }
    return names.pop() if len(names) == 1 else ""


def figure_of(view: RunView, name: str) -> Figures | None:
    """A metric of the rankings or of the answers over all questions; None if it is not known.

    Figures of answers have no chance, and an interval only if an answer was graded.
    """
    if name in view.metrics["overall"]:
        return view.metrics["overall"][name]
    graded = headline_of_answers(view.answers["figures"], "answerable") if view.answers else None
    if graded is None or answer_metric([view]) != name or graded["mean"] is None:
        return None
    return graded


def no_better_than_no_memory(views: Sequence[RunView]) -> list[str]:
    """A caveat that names the systems whose answers are not better than those without memory."""
    without = next((v for v in views if v.manifest.identity["system"]["spec"] == "none"), None)
    if without is None or not without.answers or without.longitudinal:
        return []
    metric = without.answers["figures"]["metric"]
    floor = without.answers["figures"]["answerable"]["mean"]
    as_good = []
    for view in views:
        if view is without or view.is_baseline or not view.answers or floor is None:
            continue
        own = view.answers["figures"]["answerable"]
        if view.answers["figures"]["metric"] != metric or own["mean"] is None:
            continue
        if (own["ci95"] or [own["mean"]])[0] <= floor:
            as_good.append(view.label)
    if not as_good:
        return []
    return [
        f"without memory (none) the {metric} is {floor:.3f}; {', '.join(as_good)} not shown to be "
        f"better than that: here the {metric} does not measure memory"
    ]


def caveats(view: RunView, beside: Sequence[RunView] = ()) -> list[str]:
    """What a reader must know to judge the figures, shown beside those of other runs."""
    single = [] if _all_repeats(view, beside) else [repeat_caveat(view.manifest, view.label)]
    notes = [*view.manifest.notes, *filter(None, single), *_attempts(view)]
    notes += map(withheld_note, view.manifest.withheld.values())
    if view.manifest.reviewed is not None:
        measured = view.metrics["questions"]["scorable"]
        notes.append(_reviewed(view.manifest.reviewed, measured))
        notes += _favoured({*view.metrics["by_category"], *view.manifest.withheld})
    if "disclosure" in view.metrics and (why := withheld(view.manifest)):
        notes.append(f"what the answers leaked and withheld is {why}")
    if view.longitudinal and view.judged and (why := withheld(view.manifest)):
        notes.append(f"the marks of the answers are not to be cited; {why}")
    notes += filter(None, [same_family(view.manifest)])
    if not view.is_protected:
        notes.append("made by an older version: an edit of its files might not be found")
    protocol = view.manifest.protocol.get("id")
    notes += [f"deviates from {protocol}: {deviation}" for deviation in view.manifest.deviations]
    if leaks := view.manifest.leaks:
        notes.append(f"labels may leak: {leaks} findings of the leak scan were accepted on request")
    if reach := isolation_caveat(view.manifest):
        notes.append(reach)
    if view.restarts:
        notes.append(RESTARTED.format(view.restarts))
    questions, hits = view.metrics["questions"], view.metrics["hits"]
    if view.longitudinal:
        notes += same_days(view.longitudinal)
    if negative := view.metrics["by_category"].get("negative-recall"):
        n = max(figure["n"] for figure in negative.values())
        notes.append(
            f"{n:,} negative questions list days, which recall counts as their evidence, as the "
            "published figures of Recall Bench do; a right answer to them is an abstention"
        )
    notes += few_clusters(questions.get("clusters", 0))
    if few := view.metrics.get("few_clusters"):
        named = ", ".join(map(view.category_name, few))
        notes.append(
            f"fewer than 5 conversations have questions of {named}: these intervals are about "
            "these conversations only"
        )
    if failed := questions["scorable"] - questions["measured"]:
        statuses = ", ".join(f"{n} {s}" for s, n in view.metrics["statuses"].items())
        notes.append(
            f"{failed:,} of {questions['scorable']:,} questions were not measured ({statuses}) and "
            f"are left out{_bounds(view.metrics['overall'])}; questions.jsonl gives the reasons"
        )
        notes += [f"{n:,} times: {error}" for error, n in view.metrics["errors"].items()]
    for name, own in view.metrics.get("beyond_end", {}).items():
        notes.append(
            f"{name} lies between {own['bounds'][0]:.3f} and {own['bounds'][1]:.3f}: the lists of "
            f"{own['cut']:,} of {own['n']:,} questions end before that depth"
        )
    if questions["measured"] and hits["returned"] and not view.metrics["context"]:
        notes.append("no figures by tokens: the texts of the hits are not known")
    if credit := view.metrics.get("credit"):
        notes += _credit_notes(credit)
    elif hits["merged"]:
        notes.append(f"{hits['merged']:,} hits combine several memories and count for all of them")
    if unknown := hits["unknown_ids"]:
        notes.append(
            f"{unknown:,} of {hits['returned']:,} hits have an id that is not a memory of their "
            "scenario: recall must return ids that were passed to remember "
            "(raw_retrievals.jsonl lists the hits)"
        )
    if hits["duplicates"]:
        notes.append(f"{hits['duplicates']} repeated hits were removed before scoring")
    reached = view.metrics["ingestion"]["evidence_reached"]
    if reached is not None and reached < 1:
        notes.append(f"only {reached:.1%} of the evidence reached the index")
    if unreachable := view.metrics["ingestion"]["evidence_unreachable"]:
        notes.append(f"{unreachable} evidence ids are in none of the scenarios: not retrievable")
    return notes


def _reviewed(counts: Reviewed, measured: int) -> str:
    """How many drafted questions a person confirmed, and what those with evidence can find."""
    from mnemoscope.analysis.plan import TYPICAL_CHANGE, told_apart  # few runs need it

    own = counts.questions - counts.drafted
    parts = [f"{counts.confirmed:,} of {counts.drafted:,} drafted questions confirmed by a person"]
    parts += [f"{own:,} more written by one"] if own else []
    least = told_apart(measured)
    finds = "are too few: with others the verdict may differ"
    if least is not None:
        finds = (
            f"tell two systems apart that differ by {least:.2f} or more, with power 0.8 and if "
            f"{100 * TYPICAL_CHANGE:g} % of the questions change"
        )
    return f"{', '.join(parts)}; {measured:,} questions with evidence {finds}"


def _favoured(strata: Collection[str]) -> list[str]:
    """The rule of the stratum `exact` is itself a keyword search: its figures are circular."""
    if "exact" not in strata:
        return []
    why = "by rule, their memory is the top hit of a full-text search"
    if len(strata) == 1:
        return [f"all questions with evidence are exact, which favours keyword search: {why}"]
    return [f"questions of exact favour keyword search: {why}; look at each stratum"]


def _all_repeats(view: RunView, beside: Sequence[RunView]) -> bool:
    """Whether all repeats of a view's declared set are shown together."""
    own = declared_repeat(view.manifest.identity)
    if own is None:
        return False
    others = filter(None, (declared_repeat(one.manifest.identity) for one in beside))
    return own.of == sum(one.set == own.set for one in others)


def _attempts(view: RunView) -> list[str]:
    """A caveat on earlier attempts; baselines run beside every system, so theirs are not shown."""
    found = view.attempts
    if found is None:
        return []
    notes = [found.text] if found.text and (found.differs or not view.is_baseline) else []
    return [*notes, *filter(None, [found.problem])]


def _credit_notes(credit: CreditFigures) -> list[str]:
    """What a reader must know if hits name several memories or have texts of their own."""
    notes = []
    counts = credit["sources_per_hit"]
    if counts and counts["max"] > 1:
        notes.append(
            f"hits name up to {counts['max']:,} memories (median {counts['median']:g}) and take a "
            "place in the ranking for each"
        )
    if credit["questions"]:
        notes.append(
            f"claimed and carried credit differ in {credit['questions']:,} questions: figures "
            "count evidence only if the returned text says it"
        )
    return notes


def same_days(longitudinal: LongitudinalFigures) -> list[str]:
    """A caveat on checkpoints after the end of the history: they cover the same days."""
    labels: dict[int, list[str]] = {}
    for point in longitudinal["checkpoints"]:
        labels.setdefault(point["ingested_days"], []).append(point["label"])
    return [
        f"{', '.join(same)} cover the same {days:,} days: the questions are asked again"
        for days, same in labels.items()
        if len(same) > 1
    ]


def _bounds(overall: Mapping[str, Figures]) -> str:
    first = [
        name for name in headline_of(list(overall)) if getattr(metric_of(name), "at", "") == "k"
    ]
    for name in (*first, *overall):
        if bounds := overall.get(name, {}).get("bounds"):
            counted = f"{bounds[0]:.3f} instead of {bounds[1]:.3f}"
            return f"; if they counted as wrong, {name} would be {counted}"
    return ""
