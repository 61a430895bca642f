"""A cohort is a set of numbers with the same stated conditions.

A comparison needs numbers of one cohort, but that is not sufficient: sources seldom state the
prompts of the answering model and of the judge. An unstated condition equals the unstated condition
of the same source only.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from mnemoscope.published.published_results import Published

UNSTATED = "unstated"
TRAITS = {
    "benchmark": "benchmark",
    "variant": "questions",
    "metric": "metric",
    "category": "category",
    "answer_model": "answering model",
    "judge_model": "judge",
}
"""The traits of a cohort with their printed names."""

_METRICS = {
    "accuracy_llm_judge": "judged accuracy",
    "mcq_accuracy": "multiple-choice accuracy",
    "nugget_score": "nugget score",
    "token_f1": "token F1",
    "MRR": "MRR",
    "composite_f1": "composite F1",
    "forget_rouge": "forget ROUGE-L",
    "retain_rouge": "retain ROUGE-L",
}
_RECALLS = {
    "recall_any": "any-hit recall",
    "hit": "any-hit recall",
    "recall_frac": "fractional recall",
    "recall_all": "all-hit recall",
}
_NO_MODEL = {
    "none": "none",
    "rule": "rule",
    "deterministic": "rule",
    "none (deterministic subset)": "rule",
}
_MODEL = re.compile(r"^(?:gpt|claude|gemini|qwen|kimi|deepseek|llama)[\w.-]*\d[\w.-]*", re.I)
_DATED = re.compile(r"-20\d\d-?\d\d-?\d\d$")


class Trait(msgspec.Struct, frozen=True):
    """One condition of a number."""

    says: str
    source: str = ""
    """Set if the condition is not fully stated: then it differs from those of other sources."""

    def __str__(self) -> str:
        return self.says


class Cohort(msgspec.Struct, frozen=True):
    """Numbers without a difference in their stated conditions."""

    benchmark: Trait
    variant: Trait
    metric: Trait
    category: Trait
    answer_model: Trait
    judge_model: Trait

    @property
    def id(self) -> str:
        """A short id, the same for the same conditions."""
        return "c" + hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:6]

    @property
    def description(self) -> str:
        asked = self.variant.says if self.category.says == "all" else self.category.says
        asked = "questions unstated" if asked == UNSTATED else asked
        parts = [self.benchmark.says, asked, self.metric.says]
        if (self.answer_model.says, self.judge_model.says) != ("none", "none"):
            parts += [f"answers: {self.answer_model}", f"judge: {self.judge_model}"]
        return " · ".join(parts)


def cohort_of(row: Published) -> Cohort:
    """The cohort of a published number."""
    return Cohort(
        benchmark=_stated(row.benchmark, row),
        variant=_variant(row),
        metric=_metric(row),
        category=_category(row),
        answer_model=_model(row.answer_model, row),
        judge_model=_model(row.judge_model, row),
    )


def same_cohort(one: Published, other: Published) -> bool:
    """Whether two numbers are in one cohort."""
    return cohort_of(one) == cohort_of(other)


def differences(one: Cohort, other: Cohort) -> dict[str, tuple[str, str]]:
    """Each trait that differs, with its two values."""
    return {
        trait: (getattr(one, trait).says, getattr(other, trait).says)
        for trait in TRAITS
        if getattr(one, trait) != getattr(other, trait)
    }


def _stated(says: str, row: Published) -> Trait:
    return Trait(says, row.source if says == UNSTATED else "")


def _variant(row: Published) -> Trait:
    """The questions, their number, and the granularity of retrieval."""
    text = row.variant
    if text == UNSTATED:
        return Trait(UNSTATED, row.source)
    if row.category and row.category.id:
        return Trait("the whole category")
    parts = [part.strip() for part in re.split(r"[,()]", text) if part.strip()]
    kept = [re.sub(r"\blevel\b", "", part).strip() for part in parts if not _counts(part)]
    says = ", ".join(kept) or "questions"
    says = re.sub(r"^cats (\d)-(\d)$", r"categories \1–\2", says)
    if row.n is None:
        return Trait(f"{says}, number unstated", row.source)
    says += f", n={row.n:,}"
    grainless = not re.search(r"\b(session|turn|observation)s?\b", text)
    if _retrieval(row.metric) and grainless:
        return Trait(f"{says}, granularity unstated", row.source)
    return Trait(says)


def _counts(part: str) -> bool:
    return bool(re.fullmatch(r"n=\d+|(all )?\d+ q", part))


def _retrieval(metric: str) -> bool:
    return "@" in metric or metric in ("MRR", "evidence_hit_rate")


def _metric(row: Published) -> Trait:
    """The metric. Plain `recall@k` can be any-hit or fractional, so it depends on the source."""
    if family := _METRICS.get(row.metric):
        return Trait(family)
    name, _, depth = row.metric.partition("@")
    if family := _RECALLS.get(name):
        return Trait(f"{family}@{depth}")
    if name == "recall":
        return Trait(f"recall@{depth}, any-hit or fractional unstated", row.source)
    return Trait(f"{row.metric}, definition unstated", row.source)


def _category(row: Published) -> Trait:
    category = row.category
    if category is None:
        return Trait("all")
    if category.id is None:
        return Trait(f"category unknown (its column {category.column!r})", row.source)
    says = f"category {category.id} {category.name}"
    if category.keying == "survey":
        return Trait(f"{says} (keying unconfirmed)", row.source)
    return Trait(says)


def _model(name: str | None, row: Published) -> Trait:
    """The family of a model: its name without date, provider or remarks."""
    if not name or name == "not disclosed":
        return Trait(UNSTATED, row.source)
    if name in _NO_MODEL:
        return Trait(_NO_MODEL[name])
    bare = re.sub(r"^(openai|anthropic|azure):", "", name).split("@")[0].strip()
    found = _MODEL.match(bare)
    # Two names for one run, or a name without a version: the model depends on the source.
    if not found or " / " in bare:
        return Trait(f"{name}, not told which", row.source)
    family = _DATED.sub("", found[0].lower())
    repeats = re.search(r" x(\d)\b", bare)
    return Trait(f"{family} ×{repeats[1]}" if repeats else family)
