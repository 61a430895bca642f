"""Print the tables of `judges/answer_profile.py`: words of real answers and of their references.

    python benchmarks/answer_profile.py --data LOCOMO --answers FOLDER

It counts the even conversations only; `exam_predicts.py` reports on the odd ones and says what
FOLDER is. The tables have counts and no text.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from exam_predicts import real_answers
from mnemoscope.datasets import open_dataset
from mnemoscope.text.reference_types import BESIDE, LENGTHS, SHARED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--answers", type=Path, required=True)
    chosen = parser.parse_args()
    scenarios = list(open_dataset("locomo", chosen.data).scenarios())
    by_stratum: Counter[tuple[bool, str, str]] = Counter()
    by_length: Counter[tuple[bool, str, str, str]] = Counter()
    for _, answers in real_answers(chosen.answers, scenarios, held_back=False):
        for one in answers:
            length = one.stratum.rpartition(", ")[2]
            by_stratum[one.acceptable, one.stratum, one.shared] += 1
            by_length[one.acceptable, length, one.shared, one.beside] += 1
    print("PROFILE")
    for acceptable in (True, False):
        print(f"    {acceptable}: {{")
        for stratum in sorted({stratum for side, stratum, _ in by_stratum if side is acceptable}):
            own = tuple(by_stratum[acceptable, stratum, shared] for shared in SHARED)
            print(f'        "{stratum}": {own},')
        print("    },")
    print("WORDS_BESIDE")
    for acceptable in (True, False):
        print(f"    {acceptable}: {{")
        for length in LENGTHS:
            print(f'        "{length}": {{')
            for shared in SHARED:
                own = tuple(by_length[acceptable, length, shared, beside] for beside in BESIDE)
                if any(own):
                    print(f'            "{shared}": {own},')
            print("        },")
        print("    },")


if __name__ == "__main__":
    main()
