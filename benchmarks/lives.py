"""Is the second edition of the simulator exact, and does the text of a question give it away?

    python benchmarks/lives.py [--data DIR] [--days 1000] [--questions 200] [--seed 1]
    python benchmarks/lives.py --data lives --samples docs/reference/lives-samples.md

Without --data it simulates the six personas. It prints how well a classifier of the question text
alone tells unanswerable from answerable questions and one expected reply from another, for how many
questions the evidence alone gives the answer and the rest of the history does not, and what a word
costs compared with the first edition.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.yaml import load_yaml
from mnemoscope.datasets.day_logs import day_files, read_day
from mnemoscope.datasets.persona_folder import (
    PersonaFolder,
    QuestionEntry,
    find_personas,
    read_epoch,
    read_questions,
)
from mnemoscope.personas.simulate.simulator import simulate_persona
from mnemoscope.personas.simulate.story import SHIPPED
from mnemoscope.text.fact_ledger import Ledger, LedgerFact

_WORD = re.compile(r"[a-z0-9'&.-]+|[?:;]")
_HEADING = re.compile(r"^### ", re.MULTILINE)
_SPEAKER = re.compile(r"^> [^:\n]+: ", re.MULTILINE)
_SENTENCE = re.compile(r'(?<=[.!?"]) +|\n+')
_SESSION = re.compile(r"^# session: ", re.MULTILINE)
FOLDS = 5
Floats = NDArray[np.float64]


# Does the text give the reply away?


def classifier_auc(texts: Sequence[str], labels: Sequence[bool]) -> tuple[float, float, float]:
    """The AUC of a cross-validated classifier of words and word pairs, with its 95% interval.

    Identical texts are in one fold, so that the classifier cannot look a text up.
    """
    features = _features(texts)
    truth = np.array(labels, dtype=np.float64)
    scores = np.zeros(len(texts))
    distinct = sorted(set(texts))
    Random(0).shuffle(distinct)
    fold = {text: number % FOLDS for number, text in enumerate(distinct)}
    folds = np.array([fold[text] for text in texts])
    for number in range(FOLDS):
        held, rest = folds == number, folds != number
        scores[held] = features[held] @ _logistic(features[rest], truth[rest])
    draws = np.random.default_rng(0).integers(0, len(texts), (500, len(texts)))
    boot = [_auc(truth[draw], scores[draw]) for draw in draws if 0 < truth[draw].sum() < len(draw)]
    low, high = np.percentile(boot, [2.5, 97.5])
    return _auc(truth, scores), float(low), float(high)


def _features(texts: Sequence[str]) -> Floats:
    found = []
    for text in texts:
        words = _WORD.findall(text.lower())
        pairs = [f"{a} {b}" for a, b in pairwise(words)]
        found.append({*words, *pairs, f"begins {' '.join(words[:2])}"})
    counts = Counter(feature for one in found for feature in one)
    place = {feature: n for n, feature in enumerate(sorted(f for f, c in counts.items() if c > 1))}
    table = np.zeros((len(texts), len(place) + 1))
    table[:, -1] = 1.0
    for row, one in enumerate(found):
        table[row, [place[feature] for feature in one if feature in place]] = 1.0
    return table


def _logistic(features: Floats, labels: Floats, penalty: float = 1.0, steps: int = 150) -> Floats:
    """Logistic regression by accelerated gradient descent."""
    weights = np.zeros(features.shape[1])
    moved = weights
    step = 4.0 / (np.linalg.norm(features, 2) ** 2 + 4 * penalty)
    for number in range(1, steps + 1):
        slope = features.T @ (1 / (1 + np.exp(-(features @ moved))) - labels) + penalty * moved
        following = moved - step * slope
        moved = following + (number - 1) / (number + 2) * (following - weights)
        weights = following
    return weights


def _auc(truth: Floats, scores: Floats) -> float:
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ones = truth.sum()
    return float((ranks[truth == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(truth) - ones)))


# Is the evidence enough, and is it needed?


class ReadHistory:
    """A persona folder as a program reads it: sections of days, ledger and questions."""

    def __init__(self, folder: PersonaFolder) -> None:
        self.id = folder.id
        epoch = read_epoch(folder)
        self._people = {person["name"] for person in load_yaml(folder.persona)["cast"]}
        self.ledger = Ledger.read(folder.ledger, epoch)
        self.questions = read_questions(folder.questions)
        self.days = {day: read_day(path) for day, path in day_files(folder.memories).items()}
        self.sections = {day: list(_sections(text)) for day, text in self.days.items()}
        self._names: dict[str, set[str]] = {}
        for fact in self.ledger.facts.values():
            if fact.attribute.startswith("name."):
                self._names.setdefault(fact.entity, {fact.entity}).add(fact.value)

    def answers(self, question: QuestionEntry, days: Sequence[int]) -> bool:
        """Whether these days alone state everything that the answer must name."""
        return all(self._states(reference, question, days) for reference in question.key or ())

    def _states(self, reference: str, question: QuestionEntry, days: Sequence[int]) -> bool:
        """Whether a section states it about the subject, under any name that the days explain."""
        id = reference.partition(".")[0]
        fact = self.ledger.facts[id]
        # A date, a subject or a speaker is read off where the value is stated.
        wanted = self.ledger.wordings(f"{id}.value")
        names = self._known_names(fact, question, days)
        person = fact.value in self._people
        return any(
            _has_any(part, names) and _has_any(_SPEAKER.sub("", part), wanted)
            for day in days
            for section in self.sections[day]
            # People also stand by: only a sentence says what somebody has to do with a subject.
            for part in (_SENTENCE.split(section) if person else [section])
        )

    def _known_names(
        self, fact: LedgerFact, question: QuestionEntry, days: Sequence[int]
    ) -> set[str]:
        if fact.attribute.startswith("event."):
            return {fact.value}
        if fact.attribute.startswith("team."):
            person = next(
                one.entity
                for one in self.ledger.facts.values()
                if one.attribute == "person.team" and one.entity in question.question
            )
            return {fact.entity} if self._together(person, fact.entity, days) else set()
        names = self._names.get(fact.entity, {fact.entity})
        asked = {name for name in names if name.lower() in question.question.lower()}
        if not asked or fact.attribute.startswith(("decision.", "thread.", "group.")):
            return names
        found = set(asked)
        found |= {other for other in names for name in asked if self._together(name, other, days)}
        return found

    def _together(self, one: str, other: str, days: Sequence[int]) -> bool:
        return any(
            _has_any(section, [one]) and _has_any(section, [other])
            for day in days
            for section in self.sections[day]
        )


def _sections(text: str) -> Iterator[str]:
    for page in _SESSION.split(text)[1:]:
        yield from _HEADING.split(page)[1:]


def _has_any(text: str, wordings: Sequence[str] | set[str]) -> bool:
    lower = text.lower()
    return any(
        wording.lower() in lower
        and re.search(rf"(?<!\w){re.escape(wording.lower())}(?!\w)", lower) is not None
        for wording in wordings
    )


def check_evidence(histories: Sequence[ReadHistory], count: int) -> Mapping[str, list[str]]:
    """Questions whose evidence does not suffice, and questions that the other days answer too."""
    drawn = [
        (history, question)
        for history in histories
        for question in history.questions
        if question.key and question.expected_disclosure in (None, "", "answer")
    ]
    if count < len(drawn):
        drawn = Random(7).sample(drawn, count)
    failed: dict[str, list[str]] = {"checked": [], "not enough": [], "not needed": []}
    for history, question in drawn:
        failed["checked"].append(question.id)
        evidence = sorted(set(question.relevant_days))
        if not history.answers(question, evidence):
            failed["not enough"].append(question.id)
        others = [day for day in history.days if day not in evidence]
        if history.answers(question, others):
            failed["not needed"].append(question.id)
    return failed


# The report.


def cost_ratio(days: int, seed: int) -> float:
    """Seconds a word of the second edition over seconds a word of the first."""
    rates = []
    for edition in (1, 2):
        with TemporaryDirectory() as folder:
            start = time.process_time()
            written = simulate_persona(
                "executive-assistant", Path(folder), days=days, seed=seed, edition=edition
            )
            spent = time.process_time() - start
            logs = (written.folder / f"memories-{days}d").glob("*.md")
            rates.append(spent / sum(len(path.read_text().split()) for path in logs))
    return rates[1] / rates[0]


def report(histories: Sequence[ReadHistory], count: int) -> bool:
    questions = [question for history in histories for question in history.questions]
    core = [one for one in questions if one.category != "information-boundary"]
    told = [one for one in questions if one.category == "information-boundary"]
    rows = [("unanswerable or not", core, [one.no_evidence for one in core])]
    for reply in ("answer", "refuse", "partial"):
        labels = [one.expected_disclosure == reply for one in told]
        rows.append((f"boundary: {reply} or not", told, labels))
    sound = True
    for name, asked, labels in rows:
        if not any(labels) or all(labels):
            continue
        auc, low, high = classifier_auc([one.question for one in asked], labels)
        sound &= auc <= 0.60
        print(f"{name:28} AUC {auc:.3f} [{low:.3f}, {high:.3f}]  {sum(labels)} of {len(labels)}")
    failed = check_evidence(histories, count)
    print(
        f"evidence: {len(failed['checked'])} questions checked, "
        f"{len(failed['not enough'])} not answered by it, "
        f"{len(failed['not needed'])} answered without it"
    )
    for problem in ("not enough", "not needed"):
        for id in failed[problem][:10]:
            print(f"  {problem}: {id}")
    return sound and not failed["not enough"] and not failed["not needed"]


def samples(histories: Sequence[ReadHistory], path: Path) -> None:
    """Write three days and ten questions of each persona as a page of the documentation."""
    parts = [
        "# Days and questions of mnemoscope-lives-1",
        "Days 121 to 123 of each persona and ten of its questions, drawn by `python "
        "benchmarks/lives.py --data lives --samples docs/reference/lives-samples.md` from the "
        "folder that `mnemoscope personas simulate mnemoscope-lives-1 --out lives` writes.",
    ]
    for history in histories:
        parts.append(f"## {history.id}")
        for question in sorted(
            Random(history.id).sample(history.questions, 10), key=lambda one: one.id
        ):
            days = ", ".join(map(str, question.relevant_days))
            room = f", asked in {question.query_session}" if question.query_session else ""
            parts.append(
                f"- {question.question}\n  {question.answer} *({question.category}{room}; "
                f"{'can be asked from day' if question.no_evidence else 'day'} {days})*"
            )
        for day in range(121, 124):
            body = "".join(history.days[day].partition("# session: ")[1:]).strip()
            body = re.sub(r"^# session: (.+)$", r"**Session \1**", body, flags=re.MULTILINE)
            body = re.sub(r"^### (.+)$", r"**\1.**", body, flags=re.MULTILINE)
            parts += [f"### {history.id}, day {day}", body]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=Path, help="write sample days and questions, no checks")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        data = arguments.data or Path(folder)
        if arguments.data is None:
            for persona in SHIPPED:
                options = {"days": arguments.days, "seed": arguments.seed}
                simulate_persona(persona, data, edition=2, **options)
        histories = [ReadHistory(one) for one in find_personas(data, "", "")]
        if arguments.samples:
            samples(histories, arguments.samples)
            return 0
        sound = report(histories, arguments.questions)
    ratio = cost_ratio(arguments.days, arguments.seed)
    print(f"cost of a word, second edition over first: {ratio:.2f}")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
