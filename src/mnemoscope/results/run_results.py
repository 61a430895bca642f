"""The results of runs: figures, questions and hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mnemoscope._store.jsonl import read_text
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.results.frames import OVERALL, BoldText, frame_of, html_table
from mnemoscope.results.result_rows import FigureRow, HitRow, QuestionRow
from mnemoscope.text.display import as_html
from mnemoscope.types import FAILED

if TYPE_CHECKING:
    import ranx

    from mnemoscope.analysis.answers import AnswerSheet
    from mnemoscope.analysis.disclosure_rates import DisclosureFigures
    from mnemoscope.analysis.foreign_verdicts import ImportedAnswers
    from mnemoscope.analysis.longitudinal import LongitudinalFigures
    from mnemoscope.analysis.measure import Metrics
    from mnemoscope.analysis.question_records import QuestionRecord
    from mnemoscope.analysis.repeats import RepeatSet
    from mnemoscope.analysis.system_groups import SystemGroups
    from mnemoscope.exports.export_formats import ExportContent, ExportFormat
    from mnemoscope.exports.exported_files import ExportedFiles
    from mnemoscope.results.frames import DataFrame


class RunResult:
    """One system on one benchmark: a finished run directory."""

    def __init__(self, path: str | Path, *, rewriting: bool = False) -> None:
        """With `rewriting` a report that was edited is accepted; the caller writes it again."""
        self.path = Path(path)
        self.directory = RunDirectory(self.path, rewriting=rewriting)
        self.label = self.path.name

    @cached_property
    def manifest(self) -> Manifest:
        return self.directory.manifest()

    @cached_property
    def metrics(self) -> Metrics:
        """The figures of the rankings, from metrics.json."""
        found: Metrics = self.directory.read_json("metrics.json")
        return found

    @cached_property
    def answers(self) -> AnswerSheet | None:
        """The figures of the answers, from answers.json; None for a run without answers.

        Figures of a judge that passed no exam are None, with the reason in `withheld`, and stand in
        `raw` as the judge gave them.
        """
        from mnemoscope.analysis.answers import entitled_sheet

        found: AnswerSheet | None = self._optional("answers.json")
        return None if found is None else entitled_sheet(found, self.manifest)

    @cached_property
    def disclosure(self) -> DisclosureFigures | None:
        """What was told where it may be; None where no question was asked in several rooms.

        `answers` is None if their judge passed no exam; `metrics` has what it gave.
        """
        from mnemoscope.analysis.disclosure_rates import without_answers
        from mnemoscope.analysis.entitled import withheld

        found = self.metrics.get("disclosure")
        return without_answers(found) if found and withheld(self.manifest) else found

    @cached_property
    def longitudinal(self) -> LongitudinalFigures | None:
        """The figures of each checkpoint; None for a run without checkpoints."""
        found: LongitudinalFigures | None = self._optional("longitudinal.json")
        return found

    def _optional(self, name: str) -> Any:
        return self.directory.read_json(name) if (self.path / name).exists() else None

    @property
    def is_baseline(self) -> bool:
        return self.manifest.arm

    @property
    def report(self) -> str:
        """The report of the run in Markdown, from report.md."""
        self.directory.ensure_unedited()
        return read_text(self.path / "report.md")

    @property
    def failed_everywhere(self) -> bool:
        """Whether every question failed, so that there are no figures to report."""
        if self.longitudinal is not None:
            asked = [point for point in self.longitudinal["checkpoints"] if point["asked"]]
            return all(point["statuses"].keys() <= FAILED for point in asked)
        if self.answers is not None:
            counts = self.answers["figures"]["counts"]
            return not (
                counts["judged"]
                if self.answers["judge"]
                else counts["answered"] + counts.get("truncated", 0)
            )
        if (told := self.metrics.get("disclosure")) and told["answers"]:
            return not told["answers"]["leaked"]["n"]
        return self.metrics["questions"]["measured"] == 0

    def figures(self) -> list[FigureRow]:
        """Return one row for each metric and category, of the rankings and of the answers."""
        last = self.manifest.checkpoints[-1] if self.manifest.checkpoints else ""
        scopes = {OVERALL: self.metrics["overall"], **self.metrics["by_category"]}
        rows = [
            self._row(name, category, last, figure)
            for category, figures in scopes.items()
            for name, figure in figures.items()
        ]
        for name, own in self.metrics.get("beyond_end", {}).items():
            rows.append(self._row(name, OVERALL, last, {**own, "mean": None, "ci95": None}))
        if credit := self.metrics.get("credit"):
            for name, claimed in credit["claimed"].items():
                rows.append(self._row(f"claimed_{name}", OVERALL, last, claimed))
            rate = credit["recall_per_1000_tokens"]["carried"]
            n = self.metrics["questions"]["measured"]
            rows.append(
                self._row(
                    "recall_per_1000_tokens", OVERALL, last, {"mean": rate, "n": n, "ci95": None}
                )
            )
        if told := self.disclosure:
            for category, figures_of in {OVERALL: told, **told.get("by_category", {})}.items():
                rows += self._disclosed(category, last, figures_of)
        if change := self.metrics.get("change"):
            from mnemoscope.analysis.change_scores import rates_of

            rows += [self._row(name, kind, last, own) for name, kind, own in rates_of(change)]
        if self.longitudinal is not None:
            for point in self.longitudinal["checkpoints"]:
                label, judged = point["label"], {OVERALL: point["overall"], **point["categories"]}
                rows += [
                    *(self._row("composite", name, label, own) for name, own in judged.items()),
                    self._row("recall_quality", OVERALL, label, point["recall_quality"]),
                    self._row("hallucination", OVERALL, label, point["hallucination"]),
                ]
            rows += self._ageing_rows(self.longitudinal)
        elif self.answers is not None:
            from mnemoscope.analysis.answers import headline_of

            found = self.answers["figures"]
            graded = {name: own["answerable"] for name, own in found["by_category"].items()}
            if "corrected" in found:
                rows.append(
                    self._row("accuracy_corrected", OVERALL, last, headline_of(found, "answerable"))
                )
            rows += [
                self._row(found["metric"], category, last, figure)
                for category, figure in {OVERALL: found["answerable"], **graded}.items()
            ]
        return rows

    def _disclosed(
        self, category: str, checkpoint: str, told: DisclosureFigures
    ) -> Iterator[FigureRow]:
        """The rates of leaked, withheld and right; those of hits are named like `right@10`."""
        groups = {f"@{k}": rates for k, rates in told["hits"].items()}
        if told["answers"]:
            groups[""] = told["answers"]
        for ending, rates in groups.items():
            found: Mapping[str, Any] = rates
            for name, figure in found.items():
                yield self._row(f"{name}{ending}", category, checkpoint, figure)

    def _ageing_rows(self, longitudinal: LongitudinalFigures) -> list[FigureRow]:
        """The cohort at each checkpoint, and the parts of the change up to the last one."""
        rows = []
        for measure, aged in longitudinal.get("ageing", {}).items():
            cohort = aged["cohort"]
            for point in cohort["points"] if cohort else ():
                rows.append(self._row(f"cohort_{measure}", OVERALL, point["label"], point["score"]))
            change = aged["changes"][-1]
            for name in ("total", "interference", "supersession", "composition"):
                part: Any = change[name]
                figure = {**part, "mean": part["change"], "n": part["last"]}
                rows.append(self._row(f"{name}_{measure}", OVERALL, change["last"], figure))
        return rows

    def _row(
        self, metric: str, category: str, checkpoint: str, figure: Mapping[str, Any]
    ) -> FigureRow:
        low, high = figure["ci95"] or (None, None)
        lowest, highest = figure.get("bounds") or (None, None)
        return FigureRow(
            *(self.label, metric, category, checkpoint, figure["n"]),
            *(figure["rate"] if "rate" in figure else figure["mean"], low, high),
            *(figure.get("chance"), figure.get("ceiling"), self.is_baseline),
            vacuous=bool(figure.get("vacuous")),
            lowest=lowest,
            highest=highest,
        )

    def to_frame(self) -> DataFrame:
        """Return the figures as a frame."""
        return frame_of(FigureRow, self.figures())

    def question_rows(self, *, k: int = 10) -> list[QuestionRow]:
        """Return one row for each question and checkpoint.

        A question counts as failed if recalling or answering failed, if its answer was judged
        wrong, or, without a verdict, if no evidence is among the first `k` hits.
        """
        from mnemoscope.analysis.question_records import records_of

        return [self._question_row(record, k) for record in records_of(self.directory)]

    def _question_row(self, record: QuestionRecord, k: int) -> QuestionRow:
        from mnemoscope.analysis.measure import evidence_ranks

        trial, status = record.trial, record.status or (record.trial and record.trial.status) or ""
        ranks = tuple(evidence_ranks(trial)) if trial and trial.status not in FAILED else ()
        failure = ""
        if status in FAILED:
            failure = f"{status}: {next(iter(record.errors), '')}"
        elif record.final is not None:
            failure = "wrong answer" if record.final.fails else ""
        elif trial and trial.evidence and not any(rank <= k for rank in ranks):
            failure = f"no evidence among the first {k} hits"
        question = record.question
        return QuestionRow(
            system=self.label,
            question=question.id,
            scenario=record.scenario,
            checkpoint=record.checkpoint,
            category=question.category,
            text=question.text,
            reference=question.reference,
            evidence=trial.evidence if trial else (),
            hits=trial.ranking if trial else (),
            ranks=ranks,
            status=status,
            answer=record.answer.text if record.answer else None,
            verdict=record.value,
            failure=failure,
        )

    def questions(self) -> DataFrame:
        """Return one row for each question: hits, ranks, status, answer, verdict."""
        return frame_of(QuestionRow, self.question_rows())

    def hit_rows(self) -> list[HitRow]:
        """Return one row for each hit of the last checkpoint, repeated hits included."""
        from mnemoscope.analysis.credit import credited

        rows = []
        for trial in self.directory.trials():
            evidence = set(trial.evidence)
            scores = trial.scores or (None,) * len(trial.ranking)
            tokens = trial.tokens or (None,) * len(trial.ranking)
            for place, (hit, score, cost) in enumerate(
                zip(trial.ranking, scores, tokens, strict=True), 1
            ):
                rows.append(
                    HitRow(
                        *(self.label, trial.scenario, trial.question, trial.category, place, hit),
                        *(score, cost, trial.sources.get(hit, ())),
                        not evidence.isdisjoint(credited(trial, hit)),
                    )
                )
        return rows

    def to_trec(self, folder: str | Path) -> list[Path]:
        """Write the rankings and their judgments in TREC's format, and return the two paths."""
        return Results([self]).export("trec", out=folder).written

    def to_ranx(self) -> tuple[ranx.Qrels, ranx.Run]:
        """Return ranx's `Qrels` and `Run` objects of the questions that were measured.

        Importing ranx takes seconds.
        """
        from mnemoscope.exports.document_rankings import document_rankings, ranx_objects

        return ranx_objects(document_rankings(self.directory), self.label)

    def to_ir_measures(self) -> tuple[list[Any], list[Any]]:
        """Return lists of ir_measures' `Qrel` and `ScoredDoc` of the measured questions."""
        from mnemoscope.exports.document_rankings import document_rankings, ir_measures_objects

        return ir_measures_objects(document_rankings(self.directory))

    def failed(self, *, k: int = 10) -> DataFrame:
        """Return the questions that failed, each with the reason; see `question_rows`."""
        return frame_of(QuestionRow, [row for row in self.question_rows(k=k) if row.failure])

    def __repr__(self) -> str:
        return f"RunResult {self.label} at {self.path}"

    def _repr_html_(self) -> str:
        return Results([self])._repr_html_()


class RuleChange(msgspec.Struct, frozen=True):
    """One metric by another project's rules and by sound rules."""

    compat: float
    sound: float
    difference: float


class ScoredRun(RunResult):
    """The result of scoring a file of rankings."""

    rule_changes: Mapping[str, RuleChange] = {}
    """How the other project's rules change each metric."""
    sound_rules: str = ""
    """How sound rules differ from that project's."""


class ImportedRun(RunResult):
    """The result of scoring a file of answers that were given elsewhere."""

    @cached_property
    def imported(self) -> ImportedAnswers:
        """What was read, their figures and the agreement of verdicts, from imported.json."""
        found: ImportedAnswers = self.directory.read_json("imported.json")
        return found


class Results(Mapping[str, RunResult]):
    """The runs of one call by system label, baselines last."""

    def __init__(
        self, runs: Sequence[RunResult], repeats: Sequence[RepeatSet] | None = None
    ) -> None:
        """`repeats` are the declared sets in the folder, if they are known already."""
        self.runs = list(runs)
        self._repeats = repeats
        self.path = self.runs[0].path.parent
        """The folder of the run directories."""
        self._by_label = {run.label: run for run in self.runs}

    def __getitem__(self, label: str) -> RunResult:
        try:
            return self._by_label[label]
        except KeyError:
            known = ", ".join(self._by_label)
            raise KeyError(f"no system {label!r} in these results; they have {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_label)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def over_checkpoints(self) -> bool:
        """Whether the benchmark asks questions at several checkpoints of a simulated history."""
        return "ranges" in self.runs[0].manifest.identity["benchmark"]["options"]

    @property
    def failed_everywhere(self) -> bool:
        """Whether every question failed for at least one system."""
        return any(run.failed_everywhere for run in self.runs)

    @cached_property
    def groups(self) -> SystemGroups | None:
        """Which systems cannot be told apart; None for one system, or if the runs differ in data.

        `mnemoscope.compare_many` raises an error that says why.
        """
        from mnemoscope.analysis.system_groups import groups_or_reason

        found = groups_or_reason([run.directory for run in self.runs if run.metrics["overall"]])
        return None if isinstance(found, str) else found

    def repeats(self) -> dict[str, RepeatSet]:
        """Return the declared sets of repeats by system label, computed from the journals.

        A set with a missing repeat or one that was run again has problems and no figures.
        """
        if self._repeats is None:
            from mnemoscope.analysis.repeats import repeat_sets

            self._repeats = repeat_sets(self.path)
        return {one.label: one for one in self._repeats}

    def figures(self) -> list[FigureRow]:
        return [self._grouped(row) for run in self.runs for row in run.figures()]

    def _grouped(self, row: FigureRow) -> FigureRow:
        if not self.groups or (row.metric, row.category) != (self.groups.metric, OVERALL):
            return row
        if (own := self.groups.of(row.system)) is None:
            return row
        return row._replace(group=own.letters, best_rank=own.ranks[0], worst_rank=own.ranks[1])

    def to_frame(self) -> DataFrame:
        """Return one row for each system, metric and category, with interval, chance and n."""
        return frame_of(FigureRow, self.figures())

    def questions(self) -> DataFrame:
        """Return one row for each system and question: hits, ranks, status, answer, verdict."""
        return frame_of(QuestionRow, [row for run in self.runs for row in run.question_rows()])

    def export(
        self,
        format: ExportFormat,
        *,
        what: ExportContent | None = None,
        metrics: Sequence[str] = (),
        standalone: bool = False,
        out: str | Path | None = None,
    ) -> ExportedFiles:
        """Return the results in a format of other tools, and write them to `out` if it is given.

        Each run is verified first, and its status is among the caveats.
        """
        from mnemoscope.results.export_results import exported

        found = exported(
            self.runs,
            format,
            what=what,
            metrics=metrics,
            standalone=standalone,
            figures=self.figures,
        )
        if out is not None:
            found.write(Path(out))
        return found

    def to_latex(self, *, metrics: Sequence[str] = (), standalone: bool = False) -> str:
        """Return a LaTeX table: systems down, metrics across, with intervals and groups."""
        return self.export("latex", metrics=metrics, standalone=standalone).text

    def to_markdown(self, *, metrics: Sequence[str] = ()) -> str:
        """Return the same table in Markdown."""
        return self.export("markdown", metrics=metrics).text

    def __repr__(self) -> str:
        return f"Results of {', '.join(self)} at {self.path}"

    def _repr_html_(self) -> str:
        from mnemoscope.reports import group_tables
        from mnemoscope.reports.run_view import RunView, headline
        from mnemoscope.reports.tables import MISSING, with_interval

        names = headline([RunView.of(run.directory) for run in self.runs])
        groups = self.groups
        rows = []
        for run in self.runs:
            figures = map(run.metrics["overall"].get, names)
            shown = [with_interval(f["mean"], f["ci95"], 3) if f else MISSING for f in figures]
            own = groups.of(run.label) if groups else None
            if groups and own and own.is_best and groups.metric in names:
                place = names.index(groups.metric)
                shown[place] = BoldText(shown[place])
            ranked = group_tables.markdown_cells(own) if groups else []
            label = run.label + (" (baseline)" if run.is_baseline else "")
            rows.append([label, *ranked, *shown])
        if groups is None:
            return html_table(["system", *names], rows)
        told = [group_tables.legend(groups), *groups.notes]
        return html_table(["system", "group", "ranks", *names], rows) + "".join(
            f"<p>{as_html(line)}</p>" for line in told
        )
