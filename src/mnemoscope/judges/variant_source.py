"""What the rules of `right_variants` and `wrong_variants` may use of a question."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.reference_types import ReferenceType, type_of

_NAME = re.compile(
    r"\b(?!(?:What|When|Where|Who|Which|How|Why|Would|Did|Does|Is|Are|Has|In|On|Can|Do|At|For|I|The)\b)[A-Z][a-z]+\b"
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


def name_in(question: str) -> str:
    found = _NAME.findall(question)
    return found[0] if found else "The speaker"


def topic_of(question: str) -> str:
    """The question's content words in their order, without its question words and names."""
    words = [
        w for w in _WORD.findall(question)[1:] if w.lower() not in STOP_WORDS and not w[0].isupper()
    ]
    return " ".join(words[:5])
