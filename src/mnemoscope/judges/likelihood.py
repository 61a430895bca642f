"""The likelihood judge: how much the recalled passages raise the likelihood of the reference.

A small local model reads the passages and the question, and gives the probability of the reference
as an answer. It generates no text. It judges the recalled passages, not the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope.judges import Case, EachCaseAlone, Unjudged
from mnemoscope.models.chat import ModelFailure
from mnemoscope.models.model_loader import load_local
from mnemoscope.models.prompts import load_prompt
from mnemoscope.text.token_estimate import CHARACTERS_PER_TOKEN
from mnemoscope.types import Grade, Scale

_NOTHING = "(none)"
_HOLES = frozenset({"question", "context"})


class LikelihoodGain(EachCaseAlone):
    """Mean log-probability of the reference tokens with the passages, minus that without, in nats.

    `context_tokens` limits the recalled text, best first, at four characters per token. `model` is
    `smollm2` or any `local:PATH.gguf`; grades of two models cannot be compared.
    """

    scale = Scale("likelihood", None, None)

    wants_recalled = True

    def __init__(
        self,
        context_tokens: int = 1500,
        prompt: str = "judge-likelihood",
        model: str = "smollm2",
    ) -> None:
        if context_tokens < 1:
            raise UsageError(f"context_tokens={context_tokens}: must be 1 or more")
        self._characters = context_tokens * CHARACTERS_PER_TOKEN
        self._prompt = load_prompt(prompt, _HOLES, needs=_HOLES)
        self._model = load_local(model)

    def identity(self) -> dict[str, Any]:
        return {"model": self._model.identity(), **self._prompt.identity()}

    def judge(self, case: Case) -> Grade:
        if not case.question.reference.strip():
            raise Unjudged(f"question {case.question.id} has no reference")
        shown = best_first(case.recalled, self._characters)
        if not shown:
            return Grade(0.0, "Nothing was recalled.")
        try:
            informed, guessed = self._mean(case, shown), self._mean(case, _NOTHING)
        except ModelFailure as error:
            raise Unjudged(f"the local model gave no likelihood: {error}") from error
        why = f"{informed:.3f} nats per token with the recalled passages, {guessed:.3f} without."
        return Grade(informed - guessed, why)

    def _mean(self, case: Case, context: str) -> float:
        asked = self._prompt.fill(question=case.question.text, context=context)
        found = self._model.log_likelihood(
            f"{asked.system}\n\n{asked.user}", f" {case.question.reference.strip()}"
        )
        return found.per_token


def best_first(passages: Iterable[str], characters: int) -> str:
    """The passages, one per line, up to so many characters; the last one may be cut."""
    shown: list[str] = []
    for passage in passages:
        text = passage.strip()[:characters]
        if text:
            shown.append(text)
            characters -= len(text) + 1
        if characters <= 0:
            break
    return "\n".join(shown)
