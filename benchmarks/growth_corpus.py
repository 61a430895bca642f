"""Synthetic corpora of any size with known evidence, for benchmarks/growth.py.

Word frequencies follow Zipf's law: the most frequent words are English stop words, the others are
invented words of three syllables. A memory is as long as a turn of a conversation, about 25 words.
A question consists of words of one memory, which is its evidence. The same seed gives the same
bytes, and a smaller corpus is the beginning of a larger one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import count, islice, product
from pathlib import Path

import numpy as np

from mnemoscope.text.english import STOP_WORDS

SEED = 42
WORDS = 200_000
ASKED_WORDS = 8
"""A question has at most so many words of its evidence."""
_BLOCK = 10_000
"""Memories that are drawn together, from a generator of their own."""
_OFFSET = 2.7
"""Of Mandelbrot's form of the law: the frequency of rank r is proportional to 1 / (r + 2.7)."""
_MEDIAN_WORDS, _SPREAD = 20, 0.6
_FEWEST_WORDS, _MOST_WORDS = 4, 200
_STEP = 314_159
_FORMS = ("what did they say about {}", "when was {}", "who told me that {}", "where is {}")


def vocabulary() -> list[str]:
    """Every word, the most frequent first."""
    syllables = ["".join(pair) for pair in product("bcdfghjklmnprstvwyz", "aeiou")]
    base = len(syllables)
    stop_words = sorted(word for word in STOP_WORDS if len(word) > 1)
    # A step without common divisor visits every number once, so neighbours in rank look different.
    numbers = (rank * _STEP % base**3 for rank in count())
    words = (
        syllables[n // base**2] + syllables[n // base % base] + syllables[n % base] for n in numbers
    )
    own = (word for word in words if word not in STOP_WORDS)
    return [*stop_words, *islice(own, WORDS - len(stop_words))]


def memory_texts(memories: int, seed: int = SEED) -> Iterator[str]:
    """The texts of the first memories, block by block."""
    words = np.array(vocabulary(), dtype=object)
    weights = 1 / (np.arange(len(words)) + 1 + _OFFSET)
    ends = np.cumsum(weights / weights.sum())
    for block in range(-(-memories // _BLOCK)):
        random = np.random.default_rng((seed, block))
        lengths = random.lognormal(np.log(_MEDIAN_WORDS), _SPREAD, _BLOCK)
        lengths = lengths.round().astype(int).clip(_FEWEST_WORDS, _MOST_WORDS)
        places = np.searchsorted(ends, random.random(lengths.sum()))
        drawn = words[places.clip(max=len(words) - 1)].tolist()
        own = min(_BLOCK, memories - block * _BLOCK)
        bounds = [0, *np.cumsum(lengths).tolist()]
        for place in range(own):
            yield " ".join(drawn[bounds[place] : bounds[place + 1]])


def evidence_of(questions: int, memories: int, seed: int = SEED) -> list[int]:
    """The number of the memory that each question asks about."""
    random = np.random.default_rng((seed, memories, questions))
    return random.choice(memories, questions, replace=questions > memories).tolist()  # type: ignore[no-any-return]


def question_text(number: int, evidence: str, seed: int = SEED) -> str:
    """Some words of the memory in their order, without stop words where others suffice."""
    draw = random.Random(f"{seed} {number}")
    words = evidence.split()
    own = [place for place, word in enumerate(words) if word not in STOP_WORDS]
    chosen = sorted(draw.sample(own, min(ASKED_WORDS, len(own)))) or range(len(words))
    return draw.choice(_FORMS).format(" ".join(words[place] for place in chosen))


def write_collection(folder: Path, memories: int, questions: int, seed: int = SEED) -> None:
    """A collection in BEIR's layout."""
    asked = evidence_of(questions, memories, seed)
    wanted, kept = set(asked), dict[int, str]()
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w") as file:
        for number, text in enumerate(memory_texts(memories, seed)):
            file.write(f'{{"_id": "m{number}", "text": "{text}"}}\n')
            if number in wanted:
                kept[number] = text
    with (folder / "queries.jsonl").open("w") as file:
        for number, memory in enumerate(asked):
            text = question_text(number, kept[memory], seed)
            file.write(f'{{"_id": "q{number}", "text": "{text}"}}\n')
    judged = "".join(f"q{number}\tm{memory}\t1\n" for number, memory in enumerate(asked))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")


def write_conversations(
    folder: Path, conversations: int, memories: int, questions: int, seed: int = SEED
) -> None:
    """Conversations in LoCoMo's layout; each has so many turns and questions."""
    texts = iter(memory_texts(conversations * memories, seed))
    samples = []
    for conversation in range(conversations):
        turns = list(islice(texts, memories))
        asked = evidence_of(questions, memories, seed + conversation)
        samples.append(
            {
                "sample_id": f"c{conversation}",
                "conversation": {
                    "speaker_a": "Ann",
                    "speaker_b": "Bob",
                    "session_1_date_time": "1:56 pm on 8 May, 2023",
                    "session_1": [
                        {"speaker": _speaker(n), "dia_id": f"D1:{n + 1}", "text": text}
                        for n, text in enumerate(turns)
                    ],
                },
                "qa": _answers(turns, asked, seed),
            }
        )
    folder.mkdir(parents=True)
    (folder / "locomo10.json").write_text(json.dumps(samples))


def _speaker(turn: int) -> str:
    return "Bob" if turn % 2 else "Ann"


def _answers(
    turns: Sequence[str], asked: Sequence[int], seed: int
) -> list[dict[str, str | int | list[str]]]:
    return [
        {
            "question": question_text(number, turns[memory], seed),
            "answer": turns[memory],
            "evidence": [f"D1:{memory + 1}"],
            "category": 4,
        }
        for number, memory in enumerate(asked)
    ]
