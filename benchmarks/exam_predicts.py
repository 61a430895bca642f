"""Whether the drawn exam predicts a judge's errors on real answers and on hand-written ones.

    python benchmarks/exam_predicts.py f1 rouge-l exact --data LOCOMO --answers FOLDER

FOLDER holds evaluation files of full-context baselines on LoCoMo (locomo-audit, CC BY-NC 4.0, not
part of this project). An answer counts as right or wrong where its three verdicts are unanimous.
The weights of kinds in `judges/answer_variants.py` were chosen on conversations 0, 2, 4, 6 and 8;
this script reports the others, which were seen, though not aimed at, meanwhile. The hand-written
answers were never used to choose anything.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from mnemoscope._store.spec import Spec
from mnemoscope.datasets import open_dataset
from mnemoscope.judges import Case, Judge, Unjudged
from mnemoscope.judges.appeal import ask
from mnemoscope.judges.drawn_exam import draw
from mnemoscope.judges.exam_record import ExamRecord
from mnemoscope.judges.exam_store import exam_identity, kept
from mnemoscope.judges.sit_exam import read_labelled, sit
from mnemoscope.runner.pipeline import plan_judge
from mnemoscope.stats.intervals import wilson
from mnemoscope.stats.judge_errors import error_rate
from mnemoscope.text.reference_types import stratum_of
from mnemoscope.types import Question, Scenario

BY_HAND = Path(__file__).resolve().parent.parent / "tests/judges/wrong_by_hand.jsonl"


class Labelled(NamedTuple):
    case: Case
    acceptable: bool


def real_answers(
    folder: Path, scenarios: Sequence[Scenario]
) -> Iterator[tuple[str, list[Labelled]]]:
    """The unanimous answers of each file to the odd conversations."""
    known = {(q.text, q.reference): q for one in scenarios for q in one.questions}
    for file in sorted(folder.glob("*.eval_results.json.xz")):
        with lzma.open(file) as content:
            results = json.load(content)["detailed_results"]
        found = []
        for name, rows in results.items():
            if int(name.rpartition("_")[2]) % 2 == 0:
                continue
            for row in rows:
                verdicts = set(row["llm_judgments"].values())
                question: Question | None = known.get((row["question"], str(row["golden_answer"])))
                if len(verdicts) == 1 and question is not None:
                    found.append(Labelled(Case(question, row["generated_answer"]), verdicts.pop()))
        yield file.name.partition(".eval")[0], found


def errors(judge: Judge, answers: Sequence[Labelled]) -> tuple[int, int]:
    wrong = judged = 0
    for one in answers:
        try:
            accepted = not ask(judge, one.case).fails
        except Unjudged:
            continue
        judged += 1
        wrong += accepted != one.acceptable
    return wrong, judged


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("judges", nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--sample", type=int, help="judge at most this many answers of each set")
    parser.add_argument("--budget", type=int, help="exam answers, if no exam is kept")
    chosen = parser.parse_args(arguments)
    dataset = open_dataset("locomo", chosen.data)
    scenarios = list(dataset.scenarios())
    hashes = [file.sha256 for file in dataset.files()]
    sets = list(real_answers(chosen.answers, scenarios)) if chosen.answers else []
    by_hand = [Labelled(one.case, one.acceptable) for one in read_labelled(BY_HAND).probes]
    sets.append(("written by hand", by_hand))
    print("| judge | answers | errors | found | exam says | within |")
    print("|---|---|---|---|---|---|")
    for spec in chosen.judges:
        plan = plan_judge(Spec.parse(spec), "locomo")
        judge = plan.build()
        record = kept(plan.identity, dataset.name, hashes).record
        if record is None:
            exam = draw(scenarios, seed="prediction", budget=chosen.budget)
            about = exam_identity(plan.identity)
            record = sit(judge, exam, benchmark="locomo", data=hashes, seed="prediction",
                         seed_given=True, identity=about)  # fmt: skip
        for name, answers in sets:
            for acceptable in (False, True):
                own = [one for one in answers if one.acceptable is acceptable]
                if chosen.sample and len(own) > chosen.sample:
                    own = Random(1).sample(own, chosen.sample)
                if own:
                    print(_row(spec, name, judge, record, own, acceptable), flush=True)


def _row(
    spec: str,
    name: str,
    judge: Judge,
    record: ExamRecord,
    own: Sequence[Labelled],
    acceptable: bool,
) -> str:
    wrong, judged = errors(judge, own)
    counts = Counter(stratum_of(one.case.question, one.case.answer) for one in own)
    shares = {stratum: count / len(own) for stratum, count in counts.items()}
    said = error_rate([cell for cell in record.cells() if cell.acceptable is acceptable], shares)
    low, high = wilson(wrong, judged)
    within = "yes" if low <= said.high and said.low <= high else "**no**"
    what = "right, rejected" if acceptable else "wrong, accepted"
    rate = wrong / judged if judged else 0.0
    return (
        f"| {spec} | {name} | {what} | {rate:.3f} [{low:.3f}, {high:.3f}], {wrong} of {judged} | "
        f"{said.rate:.3f} [{said.low:.3f}, {said.high:.3f}] | {within} |"
    )


if __name__ == "__main__":
    main()
