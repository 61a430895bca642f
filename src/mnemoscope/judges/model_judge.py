"""What judges share that ask a model: fenced material, a verdict read strictly, asking again.

A reply that holds no clear verdict is never guessed at: after the last try the case is unjudged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import msgspec

from mnemoscope.judges import Case, Unjudged
from mnemoscope.models.chat import ModelFailure, Prompt
from mnemoscope.models.prompts import PromptFile, load_prompt
from mnemoscope.models.replies import parse_json, without_thoughts
from mnemoscope.types import Grade

T = TypeVar("T")

HOLES = frozenset({"question", "reference", "answer", "now"})
"""What every judge's prompt may name."""
NEEDED = frozenset({"question", "answer"})
"""What it must name: without one of them it would judge something else."""
_TRIES = 3
_SHOWN = 80
# The word alone: "Correct answer: Oslo, so this is wrong" begins with it too.
_FIRST_WORD = re.compile(
    r"[\s*_\"'`#>-]*(correct|incorrect|wrong)[*_\"'`]*(?=\s*(?:\Z|[.,;!\n—–-]))([^\n]*)",
    re.IGNORECASE,
)
_EITHER = re.compile(r"\b(?:correct|incorrect|wrong)\b", re.IGNORECASE)
_VERDICTS = {"CORRECT": 1.0, "WRONG": 0.0, "INCORRECT": 0.0}


class Asked(Protocol):
    """A model, as far as judges know it."""

    def ask(self, prompt: Prompt) -> str: ...

    def identity(self) -> dict[str, Any]: ...


def settle(model: Asked, prompt: Prompt, read: Callable[[str], T]) -> T:
    """What `read` makes of the model's reply; it raises ValueError where that is no verdict.

    Then the model is told what was wrong and asked again, twice at most.
    """
    asked, problem, reply = prompt, "", ""
    for attempt in range(1, _TRIES + 1):
        try:
            reply = model.ask(asked)
        except ModelFailure as error:
            raise Unjudged(f"the judge's model gave no reply: {error}") from error
        try:
            return read(reply)
        except ValueError as error:
            problem = str(error)
        asked = msgspec.structs.replace(
            prompt,
            user=f"{prompt.user}\n\nYour last reply was of no use: {problem}. Reply again, with "
            "nothing but what is asked for.",
            attempt=attempt + 1,
        )
    raise Unjudged(f"no verdict in {_TRIES} replies: {problem}; the last begins {reply[:_SHOWN]!r}")


def read_verdict(reply: str) -> Grade:
    """CORRECT or WRONG, from a JSON object's `verdict` or as the reply's first word, alone."""
    reply = without_thoughts(reply)
    if first := _FIRST_WORD.match(reply):
        if _EITHER.search(first[2]):
            raise ValueError("its first line holds more than one verdict")
        reasoning = reply[first.start(2) :].lstrip(" .,;!\n—–-").rstrip()
        return Grade(_VERDICTS[first[1].upper()], reasoning)
    content = read_object(reply)
    word = content.get("verdict")
    if not isinstance(word, str) or word.strip().upper() not in _VERDICTS:
        raise ValueError('it holds no "verdict" that is CORRECT or WRONG')
    return Grade(_VERDICTS[word.strip().upper()], str(content.get("reasoning") or ""))


def read_object(reply: str) -> dict[str, Any]:
    """The JSON object that the reply begins with.

    One further down may be quoted from the answer, which can hold a verdict of its own making.
    """
    reply = without_thoughts(reply).strip()
    if not reply.startswith(("{", "```")):
        raise ValueError("it does not begin with the JSON object")
    return parse_json(reply)


def fill(prompt: PromptFile, case: Case, **more: str) -> Prompt:
    """The prompt about this case; what the system said is fenced."""
    question = case.question
    return prompt.fill(
        question=question.text,
        reference=question.reference,
        answer=fenced("answer", case.answer),
        now="an unknown day" if question.now is None else f"{question.now:%A, %d %B %Y}",
        **more,
    )


def fenced(name: str, text: str) -> str:
    """The text between tags that it cannot close: they carry its own hash."""
    tag = f"{name}-{sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"
    return f"<{tag}>\n{text}\n</{tag}>"


def load_family(
    prompt: str, kinds: tuple[str, ...], holes: frozenset[str]
) -> dict[str, PromptFile]:
    """A prompt file for each kind: `NAME-KIND`, or `folder/name-KIND.yaml` for one's own."""
    stem, dot, ending = prompt, "", ""
    if prompt.endswith((".yaml", ".yml")):
        stem, dot, ending = prompt.rpartition(".")
    return {
        kind: load_prompt(f"{stem}-{kind}{dot}{ending}" if kind else prompt, holes, NEEDED)
        for kind in kinds
    }


def family_identity(model: Asked, prompts: dict[str, PromptFile]) -> dict[str, Any]:
    known = {kind or "default": prompt.identity() for kind, prompt in prompts.items()}
    return {"model": model.identity(), "prompts": known}
