"""Print LoCoMo questions with turns that do not answer them, to write wrong answers by hand.

    python benchmarks/questions_without_evidence.py --data LOCOMO

The 287 answers of `tests/judges/wrong_to_locomo.jsonl` were written to this print, before their
author saw a reference or a judge's verdict on them: 300 questions, of each category as many as its
share, each with the four turns that share the most words with it and are not its evidence. Of
several turns of evidence half are shown, as if a memory had lost the others. The word behind the
number asks for an answer of a few words, of a sentence, or of a long one. Afterwards the answers
were read beside their references, and fourteen that are right, or might be, were left out.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

from mnemoscope.datasets import open_dataset
from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.tokenize import stems
from mnemoscope.types import Memory, Question, Scenario

SEED = "wrong answers to locomo"
QUESTIONS, TURNS, KEPT = 300, 4, 3
LENGTHS = ("words", "words", "words", "sentence", "sentence", "long")


def by_category(scenarios: Sequence[Scenario], rng: Random) -> list[tuple[Scenario, Question]]:
    """Questions with an answer, of each category as many as its share."""
    own: dict[str, list[tuple[Scenario, Question]]] = defaultdict(list)
    for scenario in scenarios:
        for question in scenario.questions:
            if question.expects == "answer" and question.category in "1234":
                own[question.category].append((scenario, question))
    total = sum(map(len, own.values()))
    drawn = []
    for category in sorted(own):
        pairs = sorted(own[category], key=lambda pair: pair[1].id)
        rng.shuffle(pairs)
        drawn += pairs[: round(QUESTIONS * len(pairs) / total)]
    rng.shuffle(drawn)
    return drawn


def beside(scenario: Scenario, question: Question, kept: set[str]) -> list[Memory]:
    """The turns with the words of the question, and the evidence that was not lost."""
    turns = scenario.memories
    words = [Counter(_content(turn.text)) for turn in turns]
    holding = Counter(word for own in words for word in own)
    asked = set(_content(question.text))

    def score(own: Counter[str]) -> float:
        length = own.total() / 20 + 1
        return sum(
            math.log(1 + len(turns) / holding[word]) * own[word] / (own[word] + length)
            for word in asked
            if own[word]
        )

    lost = set(question.evidence) - kept
    order = sorted(range(len(turns)), key=lambda place: (-score(words[place]), place))
    shown = [place for place in order if turns[place].id not in lost][:TURNS]
    shown += [place for place in range(len(turns)) if turns[place].id in kept][:KEPT]
    return [turns[place] for place in sorted(set(shown))]


def _content(text: str) -> list[str]:
    return [word for word in stems(text) if word not in STOP_WORDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    data = parser.parse_args().data
    rng = Random(SEED)
    scenarios = list(open_dataset("locomo", data, {"granularity": "turn"}).scenarios())
    for number, (scenario, question) in enumerate(by_category(scenarios, rng)):
        evidence = sorted(set(question.evidence))
        kept = set(rng.sample(evidence, len(evidence) // 2)) if len(evidence) > 1 else set()
        print(f"#{number} [{rng.choice(LENGTHS)}] {question.id} {question.text}")
        for turn in beside(scenario, question, kept):
            print(f"   {str(turn.at)[:10]} {turn.text[:200]}")


if __name__ == "__main__":
    main()
