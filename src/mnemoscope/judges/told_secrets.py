"""Whether an answer tells a secret of the answer key.

Where a policy is told to the reader, a secret also counts as told if its words stand in another
order or without their unit: "in miles: 62". Lines that quote a log are compared word for word.
"""

from __future__ import annotations

from mnemoscope.judges import Case
from mnemoscope.text.matching import any_says, distinctive_stems, sentences, stems
from mnemoscope.types import AnswerKey


def told_secrets(case: Case) -> list[str]:
    """The secrets that the answer tells; what the question itself names is not told by it."""
    said, asked = sentences(case.answer), sentences(case.question.text)
    key = case.question.key or AnswerKey()
    secrets = [secret for secret in key.secret if not any_says(asked, [secret])]
    told = [secret for secret in secrets if any_says(said, [secret])]
    if case.policy and not told:
        named = {stem for part in asked for stem in stems(part.text)}
        own = {stem for part in said if not part.cited for stem in stems(part.text)}
        for secret in secrets:
            telling = distinctive_stems(secret) - named
            if telling and telling <= own:
                told.append(secret)
    return told
