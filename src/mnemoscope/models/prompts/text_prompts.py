"""Prompts as plain text: a user's own copy of an official prompt, with its own placeholders."""

from __future__ import annotations

import re
from pathlib import Path

from mnemoscope._store.errors import DataError

_POSITIONS = ("question", "reference", "answer")
"""What three bare `{}` stand for, in the order of LongMemEval's script."""
_NAMES = {
    "question": "question",
    **dict.fromkeys(
        ("reference", "gold_answer", "golden_answer", "gold", "correct_answer"), "reference"
    ),
    **dict.fromkeys(
        ("generated_answer", "response", "hypothesis", "prediction", "model_answer"), "answer"
    ),
    "question_date": "now",
}
_SINGLE = re.compile(r"(?<!\{)\{(\w*)\}(?!\})")


def named_placeholders(text: str, place: Path) -> str:
    """The text with our names of its placeholders: `{gold_answer}` becomes `{{reference}}`."""
    bare = sum(match[1] == "" for match in _SINGLE.finditer(text))
    if bare not in (0, len(_POSITIONS)):
        raise DataError(
            f"has {bare} placeholders {{}}, expected three: question, right answer, reply; or "
            "write {{question}}, {{reference}} and {{answer}}",
            file=place,
        )
    positions = iter(_POSITIONS)

    def named(match: re.Match[str]) -> str:
        if not match[1]:
            return f"{{{{{next(positions)}}}}}"
        if (name := _NAMES.get(match[1])) is None:
            raise DataError(
                f"the placeholder {match[0]} is not known: write {{{{reference}}}} for the right "
                "answer and {{answer}} for the reply",
                file=place,
                line=text.count("\n", 0, match.start()) + 1,
            )
        return f"{{{{{name}}}}}"

    return _SINGLE.sub(named, text)
