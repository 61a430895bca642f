"""Dates in English text: absolute ones, and relative ones resolved against the day of the text.

"yesterday", said on 8 May 2023, is 7 May 2023. A day, a month or a year is written as one ("7 May
2023", "May 2023", "2022"). A week, a weekend or a weekday is written by the day it is counted from
("the week before 9 June 2023"), because the text does not say more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple

MONTHS = (
    "January February March April May June July August September October November December".split()
)
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTH_OF = {
    name[:length].lower(): number
    for number, name in enumerate(MONTHS, 1)
    for length in (3, len(name))
} | {"sept": 9}
_WEEKDAY_OF = {
    name[:length].lower(): number
    for number, name in enumerate(WEEKDAYS)
    for length in (3, len(name))
} | {"tues": 1, "thurs": 3, "thur": 3}
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
_COUNT_OF = {word: number for number, word in enumerate(_SMALL)} | {
    "a": 1,
    "an": 1,
    "couple": 2,
    "dozen": 12,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
}
_VAGUE = {"few", "several", "some", "many"}
_FAR = 4000
"""Counts above this are no dates."""


def with_day(text: str, at: datetime | None) -> str:
    """The text with its day in front, once: `[2023-05-08] …`; without a time, the text itself."""
    head = f"[{at.date().isoformat()}] " if at else ""
    return text if text.startswith(head) else head + text


class DateMention(NamedTuple):
    """A date in a text."""

    start: int
    end: int
    grain: str
    """day, weekday, week, weekend, month, season, year, or about for "a few weeks ago"."""
    first: date
    """The first day that it may mean."""
    last: date
    written: str

    def __str__(self) -> str:
        return self.written


def write_day(day: date) -> str:
    """A day as in "7 May 2023"."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def write_month(day: date) -> str:
    return f"{MONTHS[day.month - 1]} {day.year}"


def count_of(word: str) -> int | None:
    """The number that a word names: "two", "12"; None for others."""
    if word.isascii() and word.isdigit():
        return int(word[:9])
    return _COUNT_OF.get(word.lower())


def add_months(day: date, months: int) -> date:
    """The first day of the month that is so many months later."""
    number = day.year * 12 + day.month - 1 + months
    year = min(max(number // 12, 1), 9999)
    return date(year, number % 12 + 1, 1)


def find_dates(text: str, said: date | None = None, *, ahead: bool = False) -> list[DateMention]:
    """The dates of a text in order, without overlaps.

    `said` is the day of the text. Without it, relative dates and dates without a year are left out.
    `ahead` says that the text is about the future, so that "in May" is the next May.
    """
    found: list[DateMention] = []
    end = 0
    for match in _ANY.finditer(text):
        if match.start() < end:
            continue
        for name, value in match.groupdict().items():
            if value is not None and name in _RULES:
                made = _made(_RULES[name], match, said, ahead)
                if made is not None:
                    grain, first, last, written = made
                    found.append(
                        DateMention(match.start(), match.end(), grain, first, last, written)
                    )
                    end = match.end()
                break
    return found


_Made = tuple[str, date, date, str]


def _made(
    rule: Callable[[re.Match[str], date | None, bool], _Made | None],
    match: re.Match[str],
    said: date | None,
    ahead: bool,
) -> _Made | None:
    """What the rule makes of a match; nothing for days that do not exist."""
    try:
        return rule(match, said, ahead)
    except (ValueError, OverflowError):
        return None


def _day(day: date) -> _Made:
    return "day", day, day, write_day(day)


def _month(day: date) -> _Made:
    first = day.replace(day=1)
    return "month", first, add_months(first, 1) - timedelta(1), write_month(first)


def _year(number: int) -> _Made:
    return "year", date(number, 1, 1), date(number, 12, 31), str(number)


def _with_year(month: int, day: int, said: date | None, ahead: bool) -> date | None:
    """The latest such day up to `said`, or the next one if the text is about the future."""
    if said is None:
        return None
    own = date(said.year, month, day)
    if ahead and own < said:
        return date(said.year + 1, month, day)
    # Somebody may well name a day of the coming weeks without a word of the future.
    if not ahead and (own - said).days > 60:
        return date(said.year - 1, month, day)
    return own


def _absolute(match: re.Match[str], said: date | None, ahead: bool) -> _Made | None:
    groups = match.groupdict()
    if groups["iso_year"]:
        return _day(date(int(groups["iso_year"]), int(groups["iso_month"]), int(groups["iso_day"])))
    month = _MONTH_OF[(groups["month_a"] or groups["month_b"]).lower()]
    number = int(groups["day_a"] or groups["day_b"])
    year = groups["year_a"] or groups["year_b"]
    day = date(int(year), month, number) if year else _with_year(month, number, said, ahead)
    return _day(day) if day else None


def _named_month(match: re.Match[str], said: date | None, ahead: bool) -> _Made | None:
    month = _MONTH_OF[(match["month_c"] or match["month_d"] or match["month_e"]).lower()]
    if match["year_c"]:
        return _month(date(int(match["year_c"]), month, 1))
    if said is None:
        return None
    which = (match["which_month"] or match["which_other"] or "").lower()
    if which == "next":
        return _month(date(said.year + (month <= said.month), month, 1))
    if which == "last":
        return _month(date(said.year - (month >= said.month), month, 1))
    if ahead:
        return _month(date(said.year + (month < said.month), month, 1))
    return _month(date(said.year - (month > said.month), month, 1))


def _named_year(match: re.Match[str], said: date | None, ahead: bool) -> _Made | None:
    return _year(int(match["year_d"]))


_NEAR_DAYS = {
    "the day before yesterday": -2,
    "the day after tomorrow": 2,
    "yesterday": -1,
    "last night": -1,
    "tomorrow": 1,
}


def _near_day(match: re.Match[str], said: date | None, ahead: bool) -> _Made | None:
    words = " ".join(match["near"].lower().split())
    offset = next((days for name, days in _NEAR_DAYS.items() if words.startswith(name)), 0)
    return _day(said + timedelta(offset)) if said else None


def _weekday(match: re.Match[str], said: date | None, ahead: bool) -> _Made | None:
    if said is None:
        return None
    which = (match["which_weekday"] or "").lower()
    number = _WEEKDAY_OF[match["weekday"].lower().rstrip(".")]
    name = WEEKDAYS[number]
    if which in ("next", "this coming", "coming") or (
        which != "last" and which != "past" and ahead
    ):
        day = said + timedelta((number - said.weekday() - 1) % 7 + 1)
        return "weekday", day, day, f"the {name} after {write_day(said)}"
    day = said - timedelta((said.weekday() - number - 1) % 7 + 1)
    return "weekday", day, day, f"the {name} before {write_day(said)}"


def _near_unit(match: re.Match[str], said: date | None, ahead: bool) -> _Made | None:
    """last week, this month, next year, last summer."""
    if said is None:
        return None
    which, unit = match["which_unit"].lower(), match["unit_a"].lower()
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}[which]
    if unit == "month":
        return _month(add_months(said, step))
    if unit == "year":
        return _year(said.year + step)
    if unit in ("week", "weekend"):
        return _week(said, step, unit)
    return _season(said, step, unit)


_SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}


def _season(said: date, step: int, name: str) -> _Made:
    start = _SEASONS[name]
    year = said.year
    if (step < 0 and said.month < start + 3) or (step == 0 and name == "winter" and said.month < 3):
        year -= 1
    if step > 0 and said.month >= start:
        year += 1
    first = date(year, start, 1)
    return "season", first, add_months(first, 3) - timedelta(1), f"{name} {year}"


def _week(said: date, step: int, unit: str) -> _Made:
    monday = said - timedelta(said.weekday()) + timedelta(7 * step)
    if unit == "weekend":
        # On a Monday, "this weekend" in the past tense and "last weekend" are the same days.
        saturday = monday + timedelta(5)
        first, last = saturday, saturday + timedelta(1)
    else:
        first, last = monday, monday + timedelta(6)
    order = {-1: "before", 0: "of", 1: "after"}[step]
    return unit, first, last, f"the {unit} {order} {write_day(said)}"


def _ago(match: re.Match[str], said: date | None, ahead: bool) -> _Made | None:
    """three days ago, a few weeks ago, in two months."""
    if said is None:
        return None
    later = match["in_count"] is not None
    words = (match["in_count"] or match["count"]).lower().split()
    unit = (match["in_unit"] or match["unit_b"]).lower().rstrip("s")
    sign = 1 if later else -1
    order = "after" if later else "before"
    if _VAGUE & set(words):
        width = {"day": 3, "night": 3, "week": 21, "weekend": 21, "month": 90, "year": 1095}[unit]
        middle = said + timedelta(sign * width)
        return "about", middle, middle, f"a few {unit}s {order} {write_day(said)}"
    number = next((n for word in words if (n := count_of(word)) is not None and n != 1), 1)
    if number > _FAR:
        return None
    if unit in ("day", "night"):
        return _day(said + timedelta(sign * number))
    if unit == "month":
        return _month(add_months(said, sign * number))
    if unit == "year":
        return _year(said.year + sign * number)
    if number == 1:
        return _week(said, sign, unit)
    day = said + timedelta(sign * 7 * number)
    spelt = _SMALL[number] if number < len(_SMALL) else str(number)
    return (
        unit,
        day - timedelta(3),
        day + timedelta(3),
        f"{spelt} {unit}s {order} {write_day(said)}",
    )


_NAMES = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_NUMBER = rf"(?:\d{{1,4}}|{'|'.join(sorted(_COUNT_OF, key=len, reverse=True))})"
_COUNT = (
    rf"(?:(?:about|around|almost|over|like)\s+)?(?:(?:a|the)\s+(?:couple(?:\s+of)?|few|dozen)|"
    rf"couple(?:\s+of)?|few|several|some|many|{_NUMBER})"
)
# A short name of a weekday, and a month without a day, need their capital: sun, march, may.
_SHORT_DAYS = "|".join(sorted((name.capitalize() for name in _WEEKDAY_OF), key=len, reverse=True))
_LONG_DAYS = "|".join(name.lower() for name in WEEKDAYS)
_SURE_MONTHS = "|".join(name for name in MONTHS if name != "May")
_TH = r"(?:st|nd|rd|th)?"
_RULES: dict[str, Callable[[re.Match[str], date | None, bool], _Made | None]] = {
    "absolute": _absolute,
    "ago": _ago,
    "near": _near_day,
    "near_unit": _near_unit,
    "named_weekday": _weekday,
    "named_month": _named_month,
    "named_year": _named_year,
}
_ANY = re.compile(
    r"\b(?:"
    r"(?P<absolute>(?P<iso_year>\d{4})[-/](?P<iso_month>\d\d)[-/](?P<iso_day>\d\d)"
    rf"|(?P<day_a>\d{{1,2}}){_TH}(?:\s+of)?\s+(?P<month_a>{_NAMES})\b\.?"
    r"(?:,?\s+(?P<year_a>\d{4}))?"
    rf"|(?P<month_b>{_NAMES})\b\.?\s+(?:the\s+)?(?P<day_b>\d{{1,2}}){_TH}\b(?!\s*(?:am|pm|%|:))"
    r"(?:,?\s+(?P<year_b>\d{4})\b)?)"
    rf"|(?P<ago>(?P<count>{_COUNT})\s+(?P<unit_b>days?|nights?|weekends?|weeks?|months?|years?)\s+"
    r"(?:ago|back|earlier)\b"
    rf"|in\s+(?P<in_count>{_COUNT})\s+(?P<in_unit>days?|weeks?|months?|years?)\b(?!\s+of\b))"
    r"|(?P<near>the\s+day\s+before\s+yesterday|the\s+day\s+after\s+tomorrow|yesterday|today|"
    r"tonight|tomorrow|last\s+night|this\s+(?:morning|afternoon|evening)|just\s+now)"
    r"|(?P<near_unit>(?P<which_unit>last|past|previous|this|next|coming)\s+"
    r"(?P<unit_a>weekend|week|month|year|spring|summer|fall|autumn|winter))"
    r"|(?P<named_weekday>(?:(?P<which_weekday>last|past|this\s+coming|coming|next|this|on)\s+)?"
    rf"(?P<weekday>(?-i:{_SHORT_DAYS})|{_LONG_DAYS}))"
    r"|(?P<named_month>(?:(?P<which_month>in|last|next|this|since|until|early|late|mid|during|of)"
    rf"[\s-]+(?P<month_d>(?-i:May))|(?:(?P<which_other>last|next)\s+)?"
    rf"(?P<month_c>(?-i:{_SURE_MONTHS}))|(?P<month_e>(?-i:May))(?=,?\s+(?:19|20)\d\d))"
    r"(?:,?\s+(?P<year_c>(?:19|20)\d\d))?)"
    r"|(?P<named_year>(?P<year_d>(?:19|20)\d\d))(?!\s*(?:%|dollars|people|words|steps|points|m\b))"
    r")\b",
    re.IGNORECASE,
)
