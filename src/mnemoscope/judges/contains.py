"""`contains`: a rule for short answers without a model; `cascade`: the rule, then a small model.

A small model rejects answers that equal the reference, so it is asked only what the rule cannot
settle. It replies with one token; the log-odds of that token are kept with the verdict.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from msgspec.structs import replace

from mnemoscope._store.errors import UsageError
from mnemoscope.judges import ACCURACY, Case, EachCaseAlone, Unjudged
from mnemoscope.judges.plain_judges import without_asking
from mnemoscope.models.chat import Completion, ModelFailure
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prompts import load_prompt
from mnemoscope.text.overlap import answer_tokens
from mnemoscope.types import Grade

_HOLES = frozenset({"question", "reference", "answer"})
_ALTERNATIVES = 20
_RIGHT, _WRONG = "CORRECT", "WRONG"
_LEAST_LOGPROB = -30.0
"""In place of the log probability of a word that is not among the likeliest tokens."""
# Words that change what the other words say: "not in Oslo", "Oslo or Bergen".
_TURNS = re.compile(
    r"\b(?:not|no|never|nor|neither|none|without|or|either|unless|except|but|instead|rather)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_BETWEEN_ITEMS = re.compile(r",\s*(?:and\s+)?|;\s*|\band\b", re.IGNORECASE)
_TO_THE_JUDGE = re.compile(
    r"\b(?:verdict|correct|incorrect|wrong|reference|grader?|grading|judge|marked)\b", re.IGNORECASE
)


class Contains(EachCaseAlone):
    """1 if every stemmed word of the reference is in an answer of at most `words` words; else 0.

    A long answer contains everything, so the limit is part of the rule. An answer is not accepted
    if it has a negation or an alternative that the reference does not have, or lists more things.
    """

    scale = ACCURACY

    def __init__(self, words: int = 25) -> None:
        if words < 1:
            raise UsageError(f"words={words}: must be 1 or more")
        self._words = words

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        why = why_not_contained(case.answer, case.question.reference, self._words)
        return Grade(0.0, why) if why else Grade(1.0, "The answer contains the reference.")


class Cascade(EachCaseAlone):
    """`contains` first; what it does not accept is asked of a model, with a strict prompt.

    Args:
        model: The spec of the model; a local one gives log-odds.
        prompt: The name of a shipped prompt, or the path of your own .yaml file.
        words: The longest answer, in words, for the rule.
        threshold: The model accepts from these log-odds on.
    """

    scale = ACCURACY

    def __init__(
        self,
        model: str,
        prompt: str = "judge-strict",
        words: int = 25,
        threshold: float = 0.0,
    ) -> None:
        self._rule = Contains(words)
        self._threshold = threshold
        self._model = load_model(model)
        self._prompt = load_prompt(prompt, _HOLES, _HOLES)

    def identity(self) -> dict[str, Any]:
        return {"model": self._model.identity(), **self._prompt.identity()}

    def judge(self, case: Case) -> Grade:
        ruled = self._rule.judge(case)
        if not ruled.fails or without_asking(case) is not None:
            return ruled
        question = case.question
        if _speaks_to_the_judge(case):
            return Grade(0.0, "The answer speaks of verdicts; the model was not asked.")
        filled = self._prompt.fill(
            question=_one_line(question.text),
            reference=_one_line(question.reference),
            answer=_one_line(case.answer),
        )
        try:
            reply = self._model.complete(replace(filled, alternatives=_ALTERNATIVES))
        except ModelFailure as error:
            raise Unjudged(f"the model of the judge gave no reply: {error}") from error
        odds = log_odds(reply)
        if odds is None:
            return Grade(_first_word(reply.text), f"{ruled.reasoning} The model says {reply.text}.")
        accepted = odds > self._threshold
        why = f"{ruled.reasoning} The model's log-odds are {odds:+.2f}."
        return Grade(float(accepted), why, log_odds=odds)


def why_not_contained(answer: str, reference: str, words: int) -> str:
    """Why the rule does not accept the answer; empty if it does."""
    if len(answer.split()) > words:
        return f"The answer has more than {words} words."
    if not (wanted := Counter(answer_tokens(reference))):
        same = answer.strip().lower() == reference.strip().lower()
        return "" if same else "The reference has no words to look for."
    if missing := wanted - Counter(answer_tokens(answer)):
        return f"The answer lacks {', '.join(sorted(missing))}."
    if turned := _turns(answer) - _turns(reference):
        return f"The answer adds {', '.join(sorted(turned))}."
    # Of a list, the things that the reference does not name may be wrong.
    if 1 < _items(reference) < _items(answer):
        return "The answer lists more things than the reference."
    return ""


def log_odds(reply: Completion) -> float | None:
    """log p(CORRECT) − log p(WRONG) of the first token; None if the server gives no probabilities.

    A first token counts for a word that it begins: a tokenizer may split CORRECT after COR.
    """
    if not reply.first_token:
        return None
    return _log_sum(reply, _RIGHT) - _log_sum(reply, _WRONG)


def _log_sum(reply: Completion, word: str) -> float:
    found = [
        logprob
        for token, logprob in reply.first_token.items()
        if (start := token.strip().upper()) and word.startswith(start)
    ]
    if not found:
        return _LEAST_LOGPROB
    return max(math.log(math.fsum(map(math.exp, found))), _LEAST_LOGPROB)


def _first_word(text: str) -> float:
    """The verdict of a reply without probabilities, which may be the beginning of a word."""
    start = text.strip(" \n*\"'.").split(maxsplit=1)
    word = start[0].strip("*\"'.,").upper() if start else ""
    if word and _RIGHT.startswith(word):
        return 1.0
    if word and (_WRONG.startswith(word) or "INCORRECT".startswith(word)):
        return 0.0
    raise Unjudged(f"the reply is neither {_RIGHT} nor {_WRONG}: {text[:40]!r}")


def _turns(text: str) -> set[str]:
    return {found.lower().replace("’", "'") for found in _TURNS.findall(text)}


def _items(text: str) -> int:
    return sum(1 for item in _BETWEEN_ITEMS.split(text) if item.strip(" ."))


def _speaks_to_the_judge(case: Case) -> bool:
    known = f"{case.question.text} {case.question.reference}".lower()
    return any(word.lower() not in known for word in _TO_THE_JUDGE.findall(case.answer))


def _one_line(text: str) -> str:
    """The text without line breaks, so that it cannot add a line to the prompt."""
    return " ".join(text.split())
