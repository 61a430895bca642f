"""Whether the drawn exam predicts a judge's errors on real answers and on hand-written ones.

    python benchmarks/exam_predicts.py f1 rouge-l exact --data LOCOMO --answers FOLDER

FOLDER holds evaluation files of full-context baselines on LoCoMo (locomo-audit, CC BY-NC 4.0, not
part of this project). An answer counts as right or wrong where its three verdicts are unanimous.
The profile of `judges/answer_profile.py` and the rules that draw answers were made with
conversations 0, 2, 4, 6 and 8; this script reports the others. `--sample 60` judges so many answers
of each side and file, for judges that cost time.

"Exam" weights the exam as a run does: by types of references and lengths of answers. "Any mix"
is the range if it is not known how near answers are to their references. "Same words" weights the
exam by how many words of the reference the answers of the set share. Rates agree if their intervals
overlap. A second table has the accuracy that a run would correct by the exam, beside the share that
is labelled right.

Two sets of wrong answers were written by hand: near misses to invented questions, and answers to
questions of LoCoMo whose evidence the writer had not seen (`questions_without_evidence.py`).
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from mnemoscope._store.spec import Spec
from mnemoscope.datasets import open_dataset
from mnemoscope.judges import Case, Judge, Unjudged
from mnemoscope.judges.appeal import ask
from mnemoscope.judges.drawn_exam import draw
from mnemoscope.judges.sit_exam import read_labelled, sit
from mnemoscope.runner.pipeline import plan_judge
from mnemoscope.stats.clustered import Interval
from mnemoscope.stats.corrected import JudgeErrors, rogan_gladen
from mnemoscope.stats.intervals import wilson
from mnemoscope.stats.judge_errors import ErrorCell, ErrorRate, error_rate, mix_range
from mnemoscope.text.reference_types import shared_words, stratum_of, words_beside
from mnemoscope.types import Question, Scenario

_TESTS = Path(__file__).resolve().parent.parent / "tests/judges"
BY_HAND = _TESTS / "wrong_by_hand.jsonl"
TO_LOCOMO = _TESTS / "wrong_to_locomo.jsonl"
SEED = "prediction"
ALL = "real, all three"
CORRECTED = (
    "| judge | answers | accepted | corrected by the exam | labelled right | |\n" + "|---" * 6 + "|"
)
HEAD = "| judge | answers | errors | found | exam | | any mix | | same words | |\n"
HEAD += "|---" * 10 + "|"


class Labelled(NamedTuple):
    case: Case
    acceptable: bool

    @property
    def stratum(self) -> str:
        return stratum_of(self.case.question, self.case.answer)

    @property
    def shared(self) -> str:
        return shared_words(self.case.answer, self.case.question.reference)

    @property
    def beside(self) -> str:
        return words_beside(self.case.answer, self.case.question.reference)

    @property
    def cell(self) -> str:
        return f"{self.stratum}, {self.shared}, {self.beside}"


Verdicts = list[tuple[Labelled, bool]]
"""Answers and whether the judge erred; answers without a verdict are left out."""


def real_answers(
    folder: Path, scenarios: Sequence[Scenario], *, held_back: bool
) -> Iterator[tuple[str, list[Labelled]]]:
    """The unanimous answers of each file to the odd conversations, or to the even ones."""
    known = {(q.text, q.reference): q for one in scenarios for q in one.questions}
    for file in sorted(folder.glob("*.eval_results.json.xz")):
        with lzma.open(file) as content:
            results = json.load(content)["detailed_results"]
        found = []
        for name, rows in results.items():
            if int(name.rpartition("_")[2]) % 2 != held_back:
                continue
            for row in rows:
                verdicts = set(row["llm_judgments"].values())
                question: Question | None = known.get((row["question"], str(row["golden_answer"])))
                if len(verdicts) == 1 and question is not None:
                    found.append(Labelled(Case(question, row["generated_answer"]), verdicts.pop()))
        yield file.name.partition(".eval")[0], found


def written_answers(scenarios: Sequence[Scenario]) -> dict[str, list[Labelled]]:
    """The two sets of wrong answers that were written by hand."""
    known = {question.id: question for one in scenarios for question in one.questions}
    rows = [json.loads(line) for line in TO_LOCOMO.read_text("utf-8").splitlines()]
    return {
        "near misses": [
            Labelled(one.case, one.acceptable) for one in read_labelled(BY_HAND).probes
        ],
        "without evidence": [
            Labelled(Case(known[row["question"]], row["answer"]), acceptable=False) for row in rows
        ],
    }


def judged(judge: Judge, answers: Sequence[Labelled]) -> Verdicts:
    found: Verdicts = []
    for one in answers:
        try:
            found.append((one, (not ask(judge, one.case).fails) != one.acceptable))
        except Unjudged:
            continue
    return found


def row(judge: str, name: str, verdicts: Verdicts, cells: Sequence[ErrorCell]) -> str:
    acceptable = verdicts[0][0].acceptable
    own = [cell for cell in cells if cell.acceptable is acceptable]
    found = _of_questions(verdicts)
    strata = _shares([one.stratum for one, _ in verdicts])
    drawn, mix = error_rate(own, strata), mix_range(own, strata)
    finer = [cell._replace(stratum=f"{cell.stratum}, {cell.shared}, {cell.beside}") for cell in own]
    mixed = error_rate(finer, _shares([one.cell for one, _ in verdicts]))
    what = "right, rejected" if acceptable else "wrong, accepted"
    parts = [judge, name, what, f"{_text(found)}, {found.text}"]
    parts += [_text(drawn), _agree(found, drawn)]
    parts += [f"{mix.low:.3f} to {mix.high:.3f}", _agree(found, mix)]
    parts += [_text(mixed), _agree(found, mixed)]
    return f"| {' | '.join(parts)} |"


def corrected_row(judge: str, name: str, verdicts: Verdicts, cells: Sequence[ErrorCell]) -> str:
    """What a run with these answers would print, had the judge passed."""
    shares = _shares([one.stratum for one, _ in verdicts])
    wrong, right = (
        error_rate([cell for cell in cells if cell.acceptable is side], shares)
        for side in (False, True)
    )
    accepted = [float(one.acceptable != error) for one, error in verdicts]
    found = rogan_gladen(
        accepted,
        [one.case.question.cluster for one, _ in verdicts],
        JudgeErrors(wrong.rate, wrong.n, right.rate, right.n),
    )
    labelled = sum(one.acceptable for one, _ in verdicts) / len(verdicts)
    parts = [judge, name, f"{sum(accepted) / len(accepted):.3f}"]
    if found is None:
        parts += ["its verdicts say nothing", f"{labelled:.3f}", ""]
    else:
        agrees = _yes(found.low <= labelled <= found.high)
        said = f"{found.accuracy:.3f} [{found.low:.3f}, {found.high:.3f}]"
        parts += [said, f"{labelled:.3f}", agrees]
    return f"| {' | '.join(parts)} |"


def _of_questions(verdicts: Verdicts) -> ErrorRate:
    """The rate with Wilson's interval; answers to one question count as far as they differ."""
    n, errors = len(verdicts), sum(error for _, error in verdicts)
    rate = errors / n
    residuals: Counter[str] = Counter()
    for one, error in verdicts:
        residuals[one.case.question.id] += error - rate  # type: ignore[assignment]
    spread = sum(value * value for value in residuals.values())
    worth = min(n, round(n * n * rate * (1 - rate) / spread)) if errors % n else len(residuals)
    low, high = wilson(round(rate * worth), worth)
    return ErrorRate(rate, low, high, worth, errors, n)


def _shares(strata: Sequence[str]) -> Mapping[str, float]:
    return {stratum: count / len(strata) for stratum, count in Counter(strata).items()}


def _agree(one: ErrorRate, other: ErrorRate | Interval) -> str:
    return _yes(one.low <= other.high and other.low <= one.high)


def _yes(agrees: bool) -> str:
    return "yes" if agrees else "**no**"


def _text(rate: ErrorRate) -> str:
    return f"{rate.rate:.3f} [{rate.low:.3f}, {rate.high:.3f}]"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("judges", nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("--sample", type=int, help="judge so many answers of each side and file")
    parser.add_argument("--budget", type=int, help="the number of exam answers")
    parser.add_argument("--by-reader", action="store_true", help="each file by itself, too")
    parser.add_argument("--even", action="store_true", help="the conversations that were used")
    chosen = parser.parse_args(arguments)
    dataset = open_dataset("locomo", chosen.data)
    scenarios = list(dataset.scenarios())
    files = dict(real_answers(chosen.answers, scenarios, held_back=not chosen.even))
    by_hand = written_answers(scenarios)
    exam = draw(scenarios, seed=SEED, budget=chosen.budget)
    corrected: list[str] = []
    print(HEAD)
    for spec in chosen.judges:
        judge = plan_judge(Spec.parse(spec), "locomo").build()
        record = sit(judge, exam, benchmark="locomo", data=(), seed=SEED, seed_given=True)
        cells = record.cells()
        every: Verdicts = []
        by_file: dict[str, Verdicts] = {name: [] for name in files}
        for acceptable in (False, True):
            pooled: Verdicts = []
            for name, answers in files.items():
                own = [one for one in answers if one.acceptable is acceptable]
                verdicts = judged(judge, _sample(own, chosen.sample))
                pooled += verdicts
                by_file[name] += verdicts
                if chosen.by_reader:
                    print(row(spec, name, verdicts, cells), flush=True)
            print(row(spec, ALL, pooled, cells), flush=True)
            every += pooled
        for name, answers in by_hand.items():
            verdicts = judged(judge, _sample(answers, chosen.sample and 2 * chosen.sample))
            print(row(spec, name, verdicts, cells), flush=True)
        if chosen.by_reader:
            corrected += [corrected_row(spec, *own, cells) for own in by_file.items()]
        corrected.append(corrected_row(spec, ALL, every, cells))
    print("\n".join(["", CORRECTED, *corrected]))


def _sample(answers: list[Labelled], most: int | None) -> list[Labelled]:
    return Random(1).sample(answers, most) if most and len(answers) > most else answers


if __name__ == "__main__":
    main()
