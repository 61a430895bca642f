"""Rules that turn a reference into other right answers."""

from __future__ import annotations

import re
from datetime import date, timedelta
from random import Random

from mnemoscope.judges.answer_words import SYNONYMS
from mnemoscope.judges.variant_source import Source, name_in
from mnemoscope.text.dates import MONTHS, WEEKDAYS, write_day
from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.reference_types import find_date, find_number, list_items, number_words
from mnemoscope.text.tokenize import stems

_EXPLANATION = re.compile(
    r"\s*\(|[,;]?\s+(?:because|since|so that|as (?:he|she|they|it)|which|in order to|due to)\b"
    r"|(?<=yes)[,;]|(?<=no)[,;]",
    re.IGNORECASE,
)
_COUNTED_FROM = re.compile(
    rf"(?:on |in )?(?:the )?(?P<unit>{'|'.join(WEEKDAYS)}|weekend|week) (?P<side>before|after)",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"how many ((?:[a-z]+ )?[a-z]+s)\b")
_AUXILIARY = re.compile(r"(would|did|does|is|has|can|will|was|could|should)\b", re.IGNORECASE)
# Words that a shorter answer must keep: they turn the meaning, or join or count things.
_PREPOSITIONS = frozenset("from to for with in on into at by".split())
_NEVER_DROPPED = _PREPOSITIONS | set(
    "and or not no nor never without but before after than more most less least only except all "
    "both few some other same own once off out up down under over about".split()
)
_MOST_WORDS = 25


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
    if not forms:
        return None
    text = found.replaced(rng.choice(forms))
    # "Last year, in 2021": a preposition does not change a date that stands alone.
    alone = found.text == source.reference.strip().rstrip(".")
    return f"{'On' if found.day else 'In'} {text}" if alone and rng.random() < 0.4 else text


def resolved_date(source: Source, rng: Random) -> str | None:
    """The days that "the Friday before 14 August 2023" or the week or weekend before it are."""
    found = find_date(source.reference)
    if found is None or None in (found.day, found.month, found.year):
        return None
    before = _COUNTED_FROM.fullmatch(found.whole.partition(found.text)[0].strip())
    try:
        anchor = date(found.year or 1, found.month or 1, found.day or 1)
    except ValueError:
        return None
    if before is None:
        return None
    unit, step = before["unit"].capitalize(), -1 if before["side"].lower() == "before" else 1
    if unit in WEEKDAYS:
        day = anchor + timedelta(days=step)
        while WEEKDAYS[day.weekday()] != unit:
            day += timedelta(days=step)
        return rng.choice((write_day(day), f"{unit}, {write_day(day)}", f"on {_american(day)}"))
    monday = anchor + timedelta(days=7 * step - anchor.weekday())
    if unit == "Week":
        last = monday + timedelta(days=6)
        written = (f"between {write_day(monday)} and {write_day(last)}", _of("week", monday))
        return rng.choice(written)
    return _of("weekend", monday + timedelta(days=5 if step < 0 else -2))


def _of(unit: str, day: date) -> str:
    return f"the {unit} of {write_day(day)}"


def _american(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


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
    return rng.choice(
        (
            ", ".join(moved),
            f"{', '.join(moved[:-1])} and {moved[-1]}",
            "\n".join(f"{number}. {item}" for number, item in enumerate(moved, 1)),
        )
    )


def paraphrase(source: Source, rng: Random) -> str | None:
    """The reference with words of the same meaning, at least two in five of its content words."""
    text, changed = _with_synonyms(source.reference, rng)
    content = [word for word in text.split() if word.lower() not in STOP_WORDS]
    return _joined(source, text, rng) if changed and changed * 5 >= 2 * len(content) else None


def reworded(source: Source, rng: Random) -> str | None:
    """The reference with at least one word of the same meaning, and without empty words."""
    text, changed = _with_synonyms(source.reference, rng)
    return fewer_words(source._replace(reference=text), rng) if changed else None


def _with_synonyms(text: str, rng: Random) -> tuple[str, int]:
    """The text, and how many of its words were replaced."""
    words = text.split()
    changed = 0
    for place, word in enumerate(words):
        core = re.sub(r"\W", "", word).lower()
        if core in SYNONYMS and (place == 0 or word[0].islower()):  # not in a name
            words[place] = word.lower().replace(core, rng.choice(SYNONYMS[core]))
            changed += 1
    return " ".join(words), changed


def fewer_words(source: Source, rng: Random) -> str | None:
    """The reference without empty words, and without words of the question before a noun."""
    words = source.reference.strip().rstrip(".").split()
    # A question with "or" names the answer itself.
    if source.type not in ("text", "list") or len(words) > _MOST_WORDS or " or " in source.question:
        return None
    asked = set(stems(source.question))
    kept = []
    for place, word in enumerate(words):
        core = re.sub(r"[^\w'-]", "", word).lower()
        # The last word before a comma, an "and" or the end says what it is.
        is_last = not word[-1].isalpha() or words[place + 1 : place + 2] in ([], ["and"], ["or"])
        said = not is_last and set(stems(core)) <= asked
        if core in _NEVER_DROPPED or not (said or core in STOP_WORDS) or not core.isalpha():
            kept.append(word)
    while kept and kept[0].lower() in _PREPOSITIONS:
        kept.pop(0)
    return _joined(source, " ".join(kept), rng) if 0 < len(kept) < len(words) else None


def _joined(source: Source, text: str, rng: Random) -> str:
    """The text; half of the lists in another order, and half of them with an "and"."""
    items = list_items(text)
    if len(items) < 2 or source.type != "list" or " or " in text:
        return text
    if rng.random() < 0.5:
        rng.shuffle(items)
    return ", ".join(items) if rng.random() < 0.5 else f"{', '.join(items[:-1])} and {items[-1]}"


def more_words(source: Source, rng: Random) -> str | None:
    """The reference with a few words of the question around it."""
    text = source.reference.strip().rstrip(".")
    if source.type == "yes-no" or len(text.split()) > 12:
        return None
    if (counted := _COUNTED.search(source.question.lower())) and source.type == "number":
        noun = counted[1]
        if len(text.split()) == 1 and find_number(text) != (text, 1):
            return f"{text} {noun}"
    name = name_in(source.question)
    plain = text[:1].lower() + text[1:] if text[1:2].islower() else text
    return rng.choice(
        (
            f"It was {plain}.",
            f"{name}: {plain}.",
            f"{name} said {plain}.",
            f"{text}, according to {name}.",
            f"That would be {plain}.",
            f"The answer is {plain}.",
            f"It was {plain}, as {name} told a friend.",
            f"{text}, as {name} said in the talk about it.",
        )
    )


def yes_or_no(source: Source, rng: Random) -> str | None:
    """The verdict of the reference, with the question's own verb: "No, Odile would not"."""
    if source.type != "yes-no":
        return None
    text = source.reference.strip().lower()
    is_yes = re.match(r"(?:likely |presumably )?yes\b", text) is not None
    if not is_yes and re.match(r"(?:likely |presumably )?no\b", text) is None:
        return None
    word = "Yes" if is_yes else "No"
    forms = [f"{word}.", f"{word}, likely", f"Probably {word.lower()}"]
    if verb := _AUXILIARY.match(source.question):
        name = name_in(source.question)
        forms.append(f"{word}, {name} {verb[1].lower()}{'' if is_yes else ' not'}.")
    return rng.choice(forms)


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
