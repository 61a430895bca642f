"""Print the table of `judges/answer_profile.py`: words that real answers share with references.

    python benchmarks/answer_profile.py --data LOCOMO --answers FOLDER

It counts the even conversations only; `exam_predicts.py` reports on the odd ones and says what
FOLDER is. The table has counts and no text.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from exam_predicts import real_answers
from mnemoscope.datasets import open_dataset
from mnemoscope.text.reference_types import SHARED, shared_words, stratum_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--answers", type=Path, required=True)
    chosen = parser.parse_args()
    scenarios = list(open_dataset("locomo", chosen.data).scenarios())
    counts: Counter[tuple[bool, str, str]] = Counter()
    for _, answers in real_answers(chosen.answers, scenarios, held_back=False):
        for one in answers:
            question, answer = one.case.question, one.case.answer
            shared = shared_words(answer, question.reference)
            counts[one.acceptable, stratum_of(question, answer), shared] += 1
    for acceptable in (True, False):
        print(f"    {acceptable}: {{")
        for stratum in sorted({stratum for side, stratum, _ in counts if side is acceptable}):
            own = tuple(counts[acceptable, stratum, shared] for shared in SHARED)
            print(f'        "{stratum}": {own},')
        print("    },")


if __name__ == "__main__":
    main()
