"""Which accuracy a run may print: none without a passed exam, else one corrected for the judge.

Word overlap (f1, rouge-l) and likelihood are named by what they measure and claim no correctness,
and the ledger of a simulated persona is the truth: these need no exam.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from mnemoscope._store.run_directory import Manifest
from mnemoscope.analysis.estimates import Estimate, rounded
from mnemoscope.analysis.question_records import QuestionRecord

if TYPE_CHECKING:  # most runs have no judge
    from mnemoscope.stats.judge_errors import ErrorCell

COMBINED = "combined"
"""The key of the exam of a panel, or of a judge with its appellate judge."""
_NEEDS_NO_EXAM = frozenset({"f1", "rouge-l", "likelihood", "ledger"})
_VERSION = 2
_FAMILIES = {
    "GPT": r"\bgpt|\bchatgpt|\bo\d\b|^codex",
    "Claude": r"\bclaude|^anthropic:",
    "Gemini": r"gemini|gemma",
    "Llama": r"llama",
    "Qwen": r"qwen|qwq",
    "Mistral": r"mistral|mixtral",
    "DeepSeek": r"deepseek",
    "SmolLM": r"smollm",
    "Phi": r"\bphi-?\d",
}


def withheld(manifest: Manifest) -> str:
    """Why the run has no headline figure of its answers; empty if it may have one.

    What follows from the recorded counts decides, not whether a file says `passed`.
    """
    judge = manifest.identity.get("judge")
    if not judge or _needs_no_exam(manifest):
        return ""
    spec = str(judge["spec"])
    exam = exam_of(manifest)
    name = str(manifest.identity["benchmark"]["name"])
    if exam is None:
        if manifest.identity.get("judge_memory_window"):
            return "withheld: a judge that is shown memories has no exam"
        command = f"mnemoscope judges exam {quote(spec)} --benchmark {name}"
        if len(_judges(manifest)) > 1:
            command = "`mnemoscope judges exam` for each judge"
            return f"withheld: the judges have not all sat an exam on {name} ({command})"
        return f"withheld: the judge has sat no exam on {name} ({command}, then judge again)"
    reasons = _problems(exam, manifest)
    if not reasons:
        return ""
    return f"withheld: {reasons[0].replace('it ', 'the judge ', 1)}"


def exam_of(manifest: Manifest) -> Mapping[str, Any] | None:
    """The exam of the judges that decided; None if there is none that could count."""
    specs = _judges(manifest)
    found = manifest.exams.get(COMBINED if len(specs) > 1 else next(iter(specs), ""))
    return found if found and found.get("version") == _VERSION else None


def exam_problem(manifest: Manifest, spec: str) -> str:
    """Why the exam of one of the judges does not count; empty if it passed."""
    exam = manifest.exams.get(spec)
    if not exam or exam.get("version") != _VERSION:
        return "it sat only the smoke test, not an exam drawn from the benchmark"
    return next(iter(_problems(exam, manifest)), "")


def corrected(
    records: Sequence[QuestionRecord], manifest: Manifest, *, though_failed: bool = False
) -> Estimate | None:
    """The accuracy behind the verdicts, from the errors of the judge in its exam.

    The rates of the exam are weighted as the answers of these records are: by type of reference
    and length. With `though_failed` also for a judge that failed: its errors are as well known, so
    the interval is as good, but the figure is no headline.
    """
    from mnemoscope.stats.corrected import JudgeErrors, rogan_gladen
    from mnemoscope.stats.judge_errors import error_rate
    from mnemoscope.text.reference_types import stratum_of

    exam = exam_of(manifest)
    judged = [(one, value) for one in records if (value := one.value) is not None]
    if exam is None or not judged:
        return None
    if _of_other_data(exam, manifest) if though_failed else withheld(manifest):
        return None
    counts = Counter(
        stratum_of(one.question, one.answer.text if one.answer else "") for one, _ in judged
    )
    shares = {stratum: count / len(judged) for stratum, count in counts.items()}
    cells = _cells(exam)
    wrong = error_rate([cell for cell in cells if not cell.acceptable], shares)
    right = error_rate([cell for cell in cells if cell.acceptable], shares)
    found = rogan_gladen(
        [value for _, value in judged],
        [one.cluster for one, _ in judged],
        JudgeErrors(wrong.rate, wrong.n, right.rate, right.n),
    )
    if found is None:
        return None
    return {
        "mean": rounded(found.accuracy),
        "n": found.n,
        "ci95": [round(found.low, 8), round(found.high, 8)],
    }


def same_family(manifest: Manifest) -> str:
    """A warning if a model judges answers of its own family; empty if not."""
    reader = manifest.identity.get("reader")
    if not isinstance(reader, Mapping):
        return ""
    family = _family(str(reader["spec"]))
    if family and family in map(_family, _judges(manifest)):
        return (
            f"reader and judge are models of one family ({family}): such a judge tends to accept "
            "the errors that it makes itself"
        )
    return ""


def _family(spec: str) -> str:
    """The family of the model in the spec of a reader or judge; empty for parts without one."""
    model = re.search(r"model=([^,?]+)", spec)
    name = (model[1] if model else spec).lower()
    return next((family for family, sign in _FAMILIES.items() if re.search(sign, name)), "")


def _needs_no_exam(manifest: Manifest) -> bool:
    judge = manifest.identity["judge"]
    if "panel" in judge or manifest.identity.get("appellate_judge"):
        return all(_name(spec) == "ledger" for spec in _judges(manifest))
    # A plug-in records its source; only built-in judges are known by their name.
    return _name(str(judge["spec"])) in _NEEDS_NO_EXAM and "scale" not in judge


def _judges(manifest: Manifest) -> list[str]:
    found: list[str] = []
    for role in ("judge", "appellate_judge"):
        if about := manifest.identity.get(role):
            found += about.get("panel") or [about["spec"]]
    return found


def _name(spec: str) -> str:
    return spec.partition(",")[0]


def _of_other_data(exam: Mapping[str, Any], manifest: Manifest) -> str:
    """Why the exam says nothing of this run, whatever its counts are; empty if it may."""
    about = manifest.identity["benchmark"]
    if exam.get("benchmark") != about["name"]:
        return f"its exam is of {exam.get('benchmark')}, not of {about['name']}"
    if sorted(exam.get("data", ())) != sorted(about.get("sha256") or ()):
        return f"its exam was drawn from other data of {about['name']}"
    if exam.get("seed_given"):
        return "its exam was drawn with a seed that was known beforehand (--seed)"
    return ""


def _problems(exam: Mapping[str, Any], manifest: Manifest) -> list[str]:
    if problem := _of_other_data(exam, manifest):
        return [problem]
    from mnemoscope.stats.judge_errors import reasons_to_fail

    try:
        return reasons_to_fail(_cells(exam), exam["shares"], exam["held"])
    except (KeyError, TypeError, ValueError):
        return ["its recorded exam cannot be read"]


def _cells(exam: Mapping[str, Any]) -> list[ErrorCell]:
    from mnemoscope.stats.judge_errors import ErrorCell

    return [ErrorCell(*cell) for cell in exam["cells"]]
