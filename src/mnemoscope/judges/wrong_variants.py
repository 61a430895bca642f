"""Rules that turn a reference into wrong answers of a known kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from random import Random

from mnemoscope.judges.answer_words import (
    DATES_IN_WORDS,
    GENERAL,
    INJECTIONS,
    NEGATIONS,
    REFUSALS,
    UNSURE_DATES,
    VAGUE,
)
from mnemoscope.judges.variant_source import Source, name_in, topic_of
from mnemoscope.text.dates import WEEKDAYS
from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.reference_types import (
    FoundDate,
    find_date,
    find_number,
    list_items,
    number_words,
    type_of,
)
from mnemoscope.text.tokenize import stems

_NEAR_DAYS = 10


def other_date(source: Source, rng: Random) -> str | None:
    """Another date: half of them near, in the same month or year, half anywhere.

    A reader does not know how the reference is worded ("the week before 9 June 2023"), so most
    dates stand alone.
    """
    found = find_date(source.reference)
    if found is None:
        return None
    other = found.moved(rng)
    if rng.random() < 0.4:
        others = [
            one
            for text in source.others
            if (one := find_date(text)) and not one.same_as(found) and one.parts == found.parts
        ]
        other = rng.choice(others) if others else other
    alone = _is_alone(found)
    if not alone and rng.random() < 0.3:
        return found.replaced(other.as_written(found))
    if not alone and _may_be_meant(found, other):
        return None  # the week before it may hold that day
    forms = other.forms() if other.month else []
    written = rng.choice(forms) if forms and rng.random() < 0.5 else other.as_written(found)
    return f"{'On' if other.day else 'In'} {written}" if rng.random() < 0.3 else written


def _is_alone(found: FoundDate) -> bool:
    return found.text == found.whole.rstrip(".")


def _may_be_meant(found: FoundDate, other: FoundDate) -> bool:
    """Whether "the week before" the date found, or after it, may hold the other date."""
    later = _days_later(found, other)
    if later is None:
        return True
    before, after = (word in found.whole.lower() for word in ("before", "after"))
    if before != after and (later >= 0 if before else later <= 0):
        return False
    return abs(later) <= _NEAR_DAYS


def _days_later(one: FoundDate, other: FoundDate) -> int | None:
    """About how many days the second date is later; None if one has no day."""
    if None in (one.day, other.day):
        return None
    first, second = (
        (day.year or 0) * 372 + (day.month or 0) * 31 + (day.day or 0) for day in (one, other)
    )
    return second - first


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
    """The reference of another question."""
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
    return rng.choice(others)


def other_detail(source: Source, rng: Random) -> str | None:
    """The reference with one word, or one thing of its list, replaced by one of another answer.

    The replaced word is among the last content words: they say what it is, the first say which.
    """
    if source.type not in ("text", "list"):
        return None
    own = set(stems(f"{source.reference} {source.question}"))
    foreign = [text for text in source.others if not own & set(stems(text))]
    items = list_items(source.reference)
    if source.type == "list":
        things = _short_things(foreign)
        if not things:
            return None
        items[rng.randrange(len(items))] = rng.choice(things)
        return ", ".join(items)
    words = source.reference.strip().rstrip(".").split()
    places = [place for place, word in enumerate(words) if _content(word)]
    spare = [word for text in foreign for word in map(_core, text.split()) if _content(word)]
    if len(places) < 2:
        return None
    place = rng.choice(places[len(places) // 2 :])
    alike = [word for word in spare if word[0].isupper() == words[place][0].isupper()]
    if not alike:
        return None
    words[place] = rng.choice(alike)
    return " ".join(words)


def other_words(source: Source, rng: Random) -> str | None:
    """Some words of the reference, and as many words or more of other answers.

    The last content word of a text goes, because it says what it is; of a list, at least one thing.
    A date is another one, with words around it.
    """
    if source.type == "date":
        return _date_in_words(source, rng)
    if source.type not in ("text", "list"):
        return None
    own = set(stems(f"{source.reference} {source.question}"))
    foreign = [text for text in source.others if not own & set(stems(text))]
    if source.type == "list":
        return _mixed_list(source, foreign, rng)
    words = source.reference.strip().rstrip(".").split()
    places = [place for place, word in enumerate(words) if _content(word)]
    if len(places) < 2:
        return None
    kept = words[: rng.choice(places[1:])]
    dropped = len(words) - len(kept)
    longer = [
        text.split()
        for text in foreign
        if len(text.split()) >= dropped and type_of("", text) == "text"
    ]
    if not longer:
        return None
    added = rng.choice(longer)[: dropped + rng.randint(0, 2 + len(words) // 2)]
    while added and not _content(added[-1]):
        added.pop()
    if not added:
        return None
    first, then = (kept, added) if rng.random() < 0.7 else (added, kept)
    return _core(" ".join([*first, *then]))


def _date_in_words(source: Source, rng: Random) -> str | None:
    found = find_date(source.reference)
    if found is None:
        return None
    other = found.moved(rng)
    later = _days_later(found, other)
    if abs(later) <= _NEAR_DAYS if later is not None else not _is_alone(found):
        return None  # "the week of" it may hold the day that is meant
    kind = "year" if other.month is None else "month" if other.day is None else "day"
    written = str(other.year) if other.month is None else rng.choice(other.forms() or [found.text])
    if written == found.text:
        return None
    if kind == "day" and other.year and rng.random() < 0.3:
        return (
            f"{WEEKDAYS[date(other.year, other.month or 1, other.day or 1).weekday()]}, {written}"
        )
    return rng.choice(DATES_IN_WORDS[kind]).format(date=written)


def _mixed_list(source: Source, foreign: Sequence[str], rng: Random) -> str | None:
    """Fewer things of the list than it has, whole or in one word, among others."""
    items = list_items(source.reference)
    things = _short_things(foreign)
    count = rng.randint(1, max(1, len(items) - 1))
    added = rng.randint(len(items) - count, len(items))
    if len(items) < 2 or len(things) < count + added:
        return None
    drawn = rng.sample(things, count + added)
    mixed = drawn[:added]
    for item, thing in zip(rng.sample(items, count), drawn[added:], strict=True):
        words = [word for word in item.split() if _content(word)]
        in_part = len(words) > 1 and rng.random() < 0.8
        mixed.append(f"{_core(words[0])} {thing}" if in_part else item)
    rng.shuffle(mixed)
    return ", ".join(mixed)


def _short_things(texts: Sequence[str]) -> list[str]:
    """Things of lists, and other answers, of at most four words."""
    return [
        item
        for text in texts
        for item in list_items(text) or [text]
        if len(item.split()) <= 4 and type_of("", item) == "text"
    ]


def _core(word: str) -> str:
    return word.strip(".,;:!?\"'()")


def _content(word: str) -> bool:
    core = _core(word)
    return len(core) > 2 and core.isalpha() and core.lower() not in STOP_WORDS


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
    name = name_in(source.question)
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
        name=name_in(source.question), topic=topic_of(source.question) or "that"
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
