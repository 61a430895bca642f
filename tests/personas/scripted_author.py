"""A scripted model that writes a whole history: it derives its reply to any pass from the prompt.

It writes as many words as the prompt asks for, keeps the rules, and always gives the same reply to
a prompt. Open sessions agree on amounts, isolated ones sell secrets; both follow from the number of
the day, and so do the pairs about a day.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from tests.personas.small_persona import EPOCH, days_in, pair, secret_pair
from tests.personas.written_persona import arc, date_of, session_of
from tests.scripted_server import Request

from mnemoscope._store.yaml import load_yaml

_PROMPTS = Path(__file__).parents[2] / "src" / "mnemoscope" / "models" / "prompts"
_PERSONA, _ARCS = (
    load_yaml(_PROMPTS / f"{name}.yaml")["typical"] for name in ("write-persona", "write-arcs")
)
_MEASURES = "crates kilos metres litres".split()
_ROUTINE = (
    "The morning round took longer than usual because two lamps were out and the ladder was gone. ",
    "I wrote the list again from the old one and left out what was settled last week. ",
    "Nobody objected, and the matter stays where it is until somebody asks for it. ",
    "The mail brought little that was new, and what there was I put into the usual folder. ",
    "We went through the open points one by one and found that most of them can wait. ",
    "The weather held, so the outer berths stayed open and the crew could go home in time. ",
    "I promised to look at the figures again before anything is signed or sent. ",
    "A call came about the keys, which were found where they always are in the end. ",
)
_LOOSE = "recency-bias-resistance"
"""Pairs of this category name a day more than they need."""
_NO_LONGER = "What was agreed no longer holds of"


def author(request: Request) -> str:
    """The reply to any prompt of any pass."""
    asked = request.text
    if "Invent the persona" in asked:
        return str(_PERSONA)
    if "Plan a life of" in asked:
        return _arcs()
    if "Write the entry of the session" in asked:
        return _entry(asked)
    if "Sessions of this day:" in asked:
        return json.dumps(list(_calls(_log(asked))))
    if "<log>" in asked:
        return json.dumps(_talk(_log(asked)))
    if '"secret"' in request.system:
        wanted = int(_found(r"Write (\d+) pairs", asked))
        return json.dumps([secret_pair(day) for day in days_in(asked)[:wanted]])
    if "of each category so many" in asked:
        return json.dumps(list(_pairs(asked)))
    if "Reference answer, right on day" in asked:
        return json.dumps(_changed(asked))
    if "Reference answer:" in asked:
        return json.dumps({"why": "It is said.", "answerable": True, "days": _needed(asked)})
    if "Question:" in asked:
        return json.dumps({"answer": "", "known": False})
    return asked.partition("<notes>\n")[2].partition("\n</notes>")[0]


def thing(day: int, measure: int) -> tuple[str, str]:
    """What is spoken of openly on a day: its name, and what it comes to."""
    return f"thing{day:02}{'abcd'[measure]}", f"{100 * measure + 100 + day} {_MEASURES[measure]}"


def _arcs() -> str:
    planned: dict[str, Any] = json.loads(_ARCS)
    planned["arcs"].append(arc("claim", "decision", 3, 45, "counsel-room"))
    return json.dumps(planned)


def _entry(asked: str) -> str:
    """What was said, and routine until it is as long as it was wanted."""
    today, session = date_of(asked), session_of(asked)
    day = (_read(today) - date.fromisoformat(EPOCH)).days + 1
    said = [f"On {today} I took notes as follows."]
    if "stays here" in asked.split("\n")[0]:
        said.append(f"The vaultword{day:02} was sold for {500 + day} francs.")
    else:
        things = (thing(day, measure) for measure in range(len(_MEASURES)))
        said += [f"We agreed that {name} comes to {value}." for name, value in things]
        earlier, _ = thing(max(1, day - 3), 0)
        said.append(f"{_NO_LONGER} {earlier}." if day % 10 == 0 else f"Nothing new of {earlier}.")
        said += re.findall(r"^- (.*)$", _part("What must happen today:", asked), re.MULTILINE)
        said += re.findall(r": (.*)$", _part("What is believed today:", asked), re.MULTILINE)
    least, most = re.findall(r"How much there is to tell: .*?(\d+) to (\d+) words", asked)[0]
    text = f"### {session}\n\n{' '.join(one for one in said if one != 'none')}\n\n### Routine\n\n"
    first = zlib.crc32(f"{session} {today}".encode())
    for sentence in islice(cycle(_ROUTINE), first % len(_ROUTINE), None):
        if len(text.split()) >= (int(least) + int(most)) / 2:
            break
        text += sentence
    return text.strip()


def _pairs(asked: str) -> Iterator[dict[str, Any]]:
    days = days_in(asked)
    facts = ((day, measure) for measure in range(len(_MEASURES)) for day in days)
    today = _found(r"Today is ([^(]*) \(", asked)
    for category, wanted in re.findall(r"^- ([a-z-]+): (\d+) \(\d+ so far\)$", asked, re.MULTILINE):
        for number in range(int(wanted)):
            if category == "negative-recall":
                yield pair(
                    1,
                    question=f"Which organ of pipes was tuned {number + 1} times before {today}?",
                    answer="There is no evidence that any organ was tuned.",
                    category=category,
                    relevant_days=[],
                )
            elif (fact := next(facts, None)) is not None:
                yield _about(days, *fact, category)


def _about(days: Sequence[int], day: int, measure: int, category: str) -> dict[str, Any]:
    (name, value), other = thing(day, measure), days[days.index(day) - 1]
    about = {
        "question": f"What was it agreed that {name} comes to, for the lists of the harbour?",
        "answer": f"It was agreed that {name} comes to {value}.",
        "category": category,
        "requires_synthesis": category == "synthesis",
    }
    if category == "synthesis" and other != day:
        another, amount = thing(other, measure)
        about["question"] = f"What do {name} and {another} come to, for the lists of the harbour?"
        about["answer"] = f"It was agreed on {value} for {name} and on {amount} for {another}."
    several = category in ("synthesis", _LOOSE)
    return pair(day, **about, relevant_days=sorted({day, other}) if several else [day])


def _calls(log: str) -> Iterator[dict[str, str]]:
    for session, text in re.findall(r"^# session: (\S+)\n(.*?)(?=^# session|\Z)", log, re.M | re.S):
        for kept in re.findall(r"(?:We agreed|The vaultword)[^.]*\.", text):
            content = f"{kept} This is for the list of the week and holds until it is changed."
            yield {"session": session, "tool": "memorySave", "content": content}


def _talk(log: str) -> list[dict[str, str]]:
    said = islice(cycle(re.findall(r"(?:We agreed|The vaultword)[^.]*\.", log)), 3)
    turns: list[dict[str, str]] = []
    for number, sentence in enumerate(said):
        asked = f"{_ROUTINE[number]}What else is there that I should know about?"
        turns.append({"role": "user", "content": asked})
        turns.append({"role": "assistant", "content": f"{sentence} {_ROUTINE[number + 3]}"})
    return turns


def _needed(asked: str) -> list[int]:
    """Of the days that are shown, those that name what the reference names."""
    names = re.findall(r"thing\w+", _found(r"Reference answer:\n(.*)", asked))
    logs = _by_day(asked)
    return [day for day, log in logs if any(f"{name} comes" in log for name in names)]


def _changed(asked: str) -> dict[str, Any]:
    """Whether one of the later passages takes back what the question is about."""
    names = re.findall(r"thing\w+", _found(r"Question:\n(.*)", asked))
    for day, passage in _by_day(asked):
        if any(f"{_NO_LONGER} {name}." in passage for name in names):
            said = {"why": "It is taken back.", "superseded": True, "day": day}
            return {**said, "answer": "It no longer holds."}
    return {"why": "Nothing changes.", "superseded": False, "day": 0, "answer": ""}


def _by_day(asked: str) -> list[tuple[int, str]]:
    found = re.findall(r"^## day (\d+), \S+\n(.*?)(?=^## day |\Z)", asked, re.M | re.S)
    return [(int(day), text) for day, text in found]


def _log(asked: str) -> str:
    return _found(r"(?s)<log>\n(.*)\n</log>", asked)


def _part(heading: str, asked: str) -> str:
    """What stands below a heading of the prompt."""
    return asked.partition(f"{heading}\n")[2].partition("\n\n")[0]


def _read(today: str) -> date:
    return datetime.strptime(f"{today} +0000", "%A, %d %B %Y %z").date()


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, (pattern, text)
    return found[1]
