"""Rules that turn a reference into right and wrong answers of a known kind.

Each rule takes a reference with its question and what else the benchmark says, and returns an
answer, or None where the rule does not apply. Texts are English, as those of the datasets are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from mnemoscope.judges.answer_words import (
    GENERAL,
    INJECTIONS,
    NEGATIONS,
    REFUSALS,
    SYNONYMS,
    UNSURE_DATES,
    VAGUE,
)
from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.reference_types import (
    Length,
    ReferenceType,
    find_date,
    find_number,
    list_items,
    number_words,
    type_of,
)
from mnemoscope.text.tokenize import stems

_NAME = re.compile(
    r"\b(?!(?:What|When|Where|Who|Which|How|Why|Would|Did|Does|Is|Are|Has|In|On|Can|Do|At|For|I|The)\b)[A-Z][a-z]+\b"
)
_EXPLANATION = re.compile(
    r"\s*\(|[,;]?\s+(?:because|since|so that|as (?:he|she|they|it)|which|in order to|due to)\b"
    r"|(?<=yes)[,;]|(?<=no)[,;]",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


class Source(NamedTuple):
    """What a rule may use: the reference, its question, and texts of the same conversation."""

    question: str
    reference: str
    others: tuple[str, ...]
    """References of other questions of the conversation."""
    beside: tuple[str, ...]
    """Sentences of the conversation that do not say the reference."""
    said: tuple[str, ...]
    """Sentences of the evidence, for wordy right answers."""
    expects: str = "answer"

    @property
    def type(self) -> ReferenceType:
        return type_of(self.question, self.reference)


Rule = Callable[[Source, Random], str | None]


# Right answers


def same_words(source: Source, rng: Random) -> str | None:
    """The reference with other case and punctuation."""
    text = source.reference.strip().rstrip(".")
    forms = [text, f"{text}.", text[:1].upper() + text[1:], text[:1].lower() + text[1:] + "."]
    return rng.choice(forms)


def other_date_format(source: Source, rng: Random) -> str | None:
    found = find_date(source.reference)
    if found is None or found.month is None:
        return None
    forms = [form for form in found.forms() if form != found.text]
    return found.replaced(rng.choice(forms)) if forms else None


def other_number_format(source: Source, rng: Random) -> str | None:
    found = find_number(source.reference)
    if found is None or source.type != "number":
        return None
    text, value = found
    other = number_words(value) if text[0].isdigit() else str(value)
    return None if other is None else source.reference.replace(text, other, 1)


def other_order(source: Source, rng: Random) -> str | None:
    items = list_items(source.reference)
    if len(items) < 2 or source.type != "list":
        return None
    moved = list(items)
    while moved == items:
        rng.shuffle(moved)
    if rng.random() < 0.5:
        return ", ".join(moved)
    return f"{', '.join(moved[:-1])} and {moved[-1]}"


def paraphrase(source: Source, rng: Random) -> str | None:
    """The reference with words of the same meaning, at least two in five of its content words."""
    words = source.reference.split()
    changed = 0
    for place, word in enumerate(words):
        core = re.sub(r"\W", "", word).lower()
        if core in SYNONYMS:
            words[place] = word.lower().replace(core, rng.choice(SYNONYMS[core]))
            changed += 1
    content = [word for word in words if word.lower() not in STOP_WORDS]
    return " ".join(words) if changed * 5 >= 2 * len(content) and changed else None


def quoted(source: Source, rng: Random) -> str | None:
    """Words of the evidence that contain every content word of the reference."""
    if source.type not in ("text", "list"):
        return None
    wanted = {stem for stem in stems(source.reference) if stem not in STOP_WORDS}
    found = []
    for sentence in source.said:
        words = sentence.split()
        own = [set(stems(word)) for word in words]
        places = [place for place, one in enumerate(own) if one & wanted]
        if wanted and wanted <= set().union(*own):
            start = max(0, places[0] - rng.randint(0, 2))
            found.append(" ".join(words[start : places[-1] + 1 + rng.randint(0, 3)]))
    return rng.choice(found) if found else None


def short_form(source: Source, rng: Random) -> str | None:
    """The reference without its explanation."""
    text = source.reference.strip().rstrip(".")
    kept = _EXPLANATION.split(text)[0].strip(" ,;.")
    left = len(kept.split())
    return kept if 0 < left < len(text.split()) and left * 4 >= len(text.split()) else None


# Wrong answers


def other_date(source: Source, rng: Random) -> str | None:
    """Another date: half of them near, in the same month or year, half anywhere."""
    found = find_date(source.reference)
    if found is None:
        return None
    if rng.random() < 0.4:
        others = [
            date
            for text in source.others
            if (date := find_date(text)) and not date.same_as(found) and date.parts == found.parts
        ]
        if others:
            return rng.choice(others).text
    return found.replaced(found.moved(rng).as_written(found))


def other_number(source: Source, rng: Random) -> str | None:
    found = find_number(source.reference)
    if found is None or source.type != "number":
        return None
    text, value = found
    factors = [value + 1, value + 2, value + 5, max(1, value * 2), max(0, value - 1), value * 3 + 1]
    other = rng.choice([n for n in factors if n != value])
    written = str(other) if text[0].isdigit() else number_words(other) or str(other)
    return source.reference.replace(text, written, 1)


def other_entity(source: Source, rng: Random) -> str | None:
    """The reference of another question, or the reference with one content word replaced."""
    if source.type in ("date", "number", "yes-no"):
        return None
    own = set(stems(source.reference))
    others = [
        text
        for text in source.others
        if not own & set(stems(text))
        and type_of("", text) in ("text", "list")
        and 0.4 <= (len(text.split()) + 1) / (len(source.reference.split()) + 1) <= 2.5
    ]
    if not others:
        return None
    other = rng.choice(others)
    words = source.reference.split()
    content = [i for i, w in enumerate(words) if w.lower().strip(".,") not in STOP_WORDS]
    spare = [w.strip(".,;\"'") for w in other.split() if w.lower().strip(".,") not in STOP_WORDS]
    if len(content) >= 2 and spare and rng.random() < 0.2:
        # The last content words say what it is; the first say which.
        for place in content[-max(1, len(content) // 2) :]:
            words[place] = rng.choice(spare)
        return " ".join(words)
    return other


def negated(source: Source, rng: Random) -> str | None:
    text = source.reference.strip().rstrip(".")
    if source.type == "yes-no":
        return _flipped(text)
    if len(text.split()) > 14:
        return None
    return rng.choice(NEGATIONS).format(
        text=text[:1].lower() + text[1:] if text[1:2].islower() else text
    )


def vaguer(source: Source, rng: Random) -> str | None:
    """An answer that is too general to be right."""
    found = find_date(source.reference)
    if source.type == "yes-no":
        return None
    if found is not None:
        forms = [form.format(year=found.year or "that year") for form in UNSURE_DATES]
        if found.day and found.month:
            forms += [f"in {found.year or 'that year'}", f"sometime in {found.year or 'that year'}"]
        return rng.choice(forms)
    name = _name(source.question)
    head = source.question.lower()
    for start, forms_of in GENERAL.items():
        if start in head:
            return rng.choice(forms_of).format(name=name)
    return rng.choice(VAGUE).format(name=name)


def part_of_list(source: Source, rng: Random) -> str | None:
    items = list_items(source.reference)
    if len(items) < 2 or source.type != "list":
        return None
    kept = rng.sample(items, rng.randint(1, max(1, len(items) // 2)))
    return ", ".join(kept)


def superset(source: Source, rng: Random) -> str | None:
    """All of the reference, and claims of the same form that are not true."""
    found = find_date(source.reference)
    if found is not None and source.type == "date":
        other = found.moved(rng).as_written(found)
        return f"{source.reference.rstrip('.')} or {found.replaced(other)}"
    items = list_items(source.reference)
    own = set(stems(source.reference))
    pool = [
        item
        for text in source.others
        for item in list_items(text) or [text]
        if not own & set(stems(item)) and len(item.split()) <= 5 and type_of("", item) == "text"
    ]
    if source.type != "list" or len(pool) < 2:
        return None
    added = rng.sample(pool, min(len(pool), rng.choice([2, 3, len(items)])))
    mixed = [*items, *added]
    rng.shuffle(mixed)
    return ", ".join(mixed)


def refusal(source: Source, rng: Random) -> str | None:
    return rng.choice(REFUSALS).format(
        name=_name(source.question), topic=_topic(source.question) or "that"
    )


def injection(source: Source, rng: Random) -> str | None:
    wrong = rng.choice(source.others) if source.others and rng.random() < 0.5 else ""
    return f"{wrong} {rng.choice(INJECTIONS)}".strip()


def right_topic(source: Source, rng: Random) -> str | None:
    """A sentence of the conversation about the question's topic that does not answer it."""
    asked = set(stems(source.question))
    near = [text for text in source.beside if asked & set(stems(text))]
    if not near:
        return None
    words = rng.choice(near).split()
    return " ".join(words[: rng.choice([6, 8, 10])])


def confabulated(source: Source, rng: Random) -> str | None:
    """An answer to a question that has none."""
    fitting = [text for text in source.others if find_date(text) is None]
    when = "when" in source.question.lower()
    dated = [text for text in source.others if find_date(text) is not None]
    pool = dated if when and dated else fitting
    return rng.choice(pool) if pool else None


class Kind(NamedTuple):
    """A kind of answer: its rule, and how often it is found among answers of its side."""

    rule: Rule
    acceptable: bool
    weight: float
    """0 for kinds that no honest reader gives: they count by themselves only."""
    expects: str = "answer"


KINDS: dict[str, Kind] = {
    "right-same-words": Kind(same_words, True, 3.0),
    "right-date-format": Kind(other_date_format, True, 3.0),
    "right-number-format": Kind(other_number_format, True, 2.0),
    "right-list-order": Kind(other_order, True, 1.0),
    "right-paraphrase": Kind(paraphrase, True, 4.0),
    "right-quoted": Kind(quoted, True, 2.0),
    "right-short": Kind(short_form, True, 1.0),
    "correct-refusal": Kind(refusal, True, 1.0, "abstain"),
    "other-date": Kind(other_date, False, 6.0),
    "other-number": Kind(other_number, False, 6.0),
    "other-entity": Kind(other_entity, False, 6.0),
    "negated": Kind(negated, False, 0.2),
    "vaguer": Kind(vaguer, False, 2.0),
    "part-of-list": Kind(part_of_list, False, 1.5),
    "superset": Kind(superset, False, 0.3),
    "refusal": Kind(refusal, False, 1.0),
    "injection": Kind(injection, False, 0.0),
    "right-topic": Kind(right_topic, False, 2.0),
    "confabulated": Kind(confabulated, False, 1.0, "abstain"),
}
"""Right ones first. A weight of 3 beside one of 1 means three times as many."""
SHORT_ONLY = frozenset({"refusal", "correct-refusal", "injection"})


def at_length(
    answer: str, source: Source, length: Length, *, acceptable: bool, rng: Random
) -> str | None:
    """The answer as it is, in a sentence, or in a reply that says more than was asked.

    What a long reply adds to a wrong answer does not make it right.
    """
    if length == "plain":
        return answer
    text = answer.strip().rstrip(".")
    name, topic = _name(source.question), _topic(source.question) or "this"
    if length == "sentence":
        forms = (
            f"{name}, {topic}: {text}.",
            f"On {topic}, {name} said {text}.",
            f"As for {topic}, I think it was {text}.",
        )
        return rng.choice(forms)
    context = list(source.said if acceptable else source.beside)
    if not context:
        return None
    rng.shuffle(context)
    start = rng.choice(
        (
            f"Based on what {name} said about {topic}, the answer is {text}.",
            f"{name} talked about {topic}: {text}.",
            f"When it comes to {topic}, {name} mentioned {text}.",
        )
    )
    added = [word for sentence in context[:3] for word in sentence.split()]
    return " ".join([start, *added[: rng.choice((12, 20, 30))]])


def _flipped(text: str) -> str | None:
    for old, new in (
        ("likely yes", "Likely no"),
        ("likely no", "Likely yes"),
        ("yes", "No"),
        ("no", "Yes"),
    ):
        if text.lower().startswith(old):
            return new
    return None


def _name(question: str) -> str:
    found = _NAME.findall(question)
    return found[0] if found else "The speaker"


def _topic(question: str) -> str:
    """The question's content words in their order, without its question words and names."""
    words = [
        w for w in _WORD.findall(question)[1:] if w.lower() not in STOP_WORDS and not w[0].isupper()
    ]
    return " ".join(words[:5])
