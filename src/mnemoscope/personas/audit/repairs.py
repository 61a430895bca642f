"""Repairs that can be proposed without a model: which days hold what the answer says.

They lean on numbers, dates, codes and names alone: an answer that has none gets no proposal.
"""

from __future__ import annotations

from mnemoscope.datasets.persona_folder import Entry
from mnemoscope.personas.audit.audited_log import AuditedLife
from mnemoscope.personas.write.question_wording import word_stems


def fewer_days(life: AuditedLife, entry: Entry) -> tuple[int, ...]:
    """As few of the relevant days as hold every value that all of them hold; else none.

    Of days that hold as many, the one that shares more words with question and answer, then the
    earlier one.
    """
    days = life.evidence(entry)
    everything = set(life.absent(entry, ())) - set(life.absent(entry, days))
    asked = word_stems(f"{entry.question} {entry.answer}")
    holds = {day: everything - set(life.absent(entry, (day,))) for day in days}
    chosen: list[int] = []
    left = everything
    while left:
        best = max(
            days, key=lambda day: (len(holds[day] & left), len(asked & life.stems(day)), -day)
        )
        if not holds[best] & left:
            return ()
        chosen.append(best)
        left = left - holds[best]
    return tuple(sorted(chosen)) if 0 < len(chosen) < len(days) else ()


def days_with(life: AuditedLife, entry: Entry) -> tuple[int, ...]:
    """The first day of the life whose log holds every value of the answer; none where none does."""
    if not life.absent(entry, ()):
        return ()
    until = entry.irrelevant_after or max(life.logs)
    for day in life.logs:
        if day <= until and not life.absent(entry, (day,)):
            return (day,)
    return ()
