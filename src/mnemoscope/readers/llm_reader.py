"""Readers that let a language model answer from the recalled passages.

All systems get the same prompt: dates, sessions and texts of the passages, today's date and the
question. Ids and scores are left out, because they would identify the system.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prompts import load_prompt
from mnemoscope.models.replies import without_thoughts
from mnemoscope.readers import Passage, Reply
from mnemoscope.readers.shown_passages import excerpts_of, long_date, turns_of
from mnemoscope.text.token_estimate import CHARACTERS_PER_TOKEN, estimate_tokens
from mnemoscope.types import Query

HOLES = frozenset({"context", "turns", "now", "question", "session", "policy"})
NEEDED = frozenset({"question"})
UNKNOWN_DATE = "an unknown date"
NO_SESSION = "not known"
NO_POLICY = "(There is none.)"
NOTHING = "(Nothing was recalled.)"

_LEAD = re.compile(r"(?:the |final |short )?answer\s*:\s*", re.IGNORECASE)
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»"}
_ANY = datetime.min.replace(tzinfo=UTC)


class Llm:
    """Asks a model with the best passages in the prompt.

    Args:
        model: The spec of the model.
        prompt: The name of a built-in prompt, or the path of your own .yaml file.
        passages: The maximum number of passages, best first; 0 for all.
        tokens: The maximum of estimated tokens for all passages; 0 for no limit.
        max_tokens: The maximum length of the reply; 0 for the limit of the prompt.
    """

    wants_everything = False
    """Whether it gets all memories, in time order, instead of the hits."""

    def __init__(
        self,
        model: str,
        prompt: str = "answer",
        passages: int = 10,
        tokens: int = 0,
        max_tokens: int = 0,
    ) -> None:
        for name, value in (("passages", passages), ("tokens", tokens), ("max_tokens", max_tokens)):
            if value < 0:
                raise UsageError(f"{name}={value}: must be 0 or more")
        self.passages = passages
        self.tokens = tokens
        self._prompt = load_prompt(prompt, HOLES, NEEDED)
        holes = self._prompt.holes & {"context", "turns"}
        if len(holes) != 1:
            raise DataError(
                "a reader's prompt needs {{context}}, or {{turns}} for a small model, and not both",
                file=prompt,
            )
        (self._hole,) = holes
        self._shown = turns_of if self._hole == "turns" else excerpts_of
        self.max_tokens = max_tokens or self._prompt.content.max_tokens
        self._model = load_model(model)

    def identity(self) -> dict[str, Any]:
        return {
            "model": self._model.identity(),
            **self._prompt.identity(),
            "passages": self.passages,
            "tokens": self.tokens,
            "max_tokens": self.max_tokens,
        }

    def read(self, query: Query, passages: Sequence[Passage]) -> Reply:
        shown = list(self._within(passages))
        # Sorting is stable: passages with the same date, or without one, keep their rank order.
        in_time = sorted(shown, key=lambda passage: (passage.at is None, passage.at or _ANY))
        filled = self._prompt.fill(
            **{self._hole: self._shown(in_time) or NOTHING},
            now=long_date(query.now) if query.now else UNKNOWN_DATE,
            question=query.text.strip(),
            session=" ".join(query.session.split()) or NO_SESSION,
            policy=query.policy.strip() or NO_POLICY,
        )
        prompt = msgspec.structs.replace(filled, max_tokens=self.max_tokens)
        completion = self._model.complete(prompt)
        text = plain_answer(completion.text)
        sources = tuple(passage.id for passage in shown)
        return Reply(
            text,
            abstained=True if completion.refusal else None,
            sources=sources,
            shown=len(shown),
            truncated=completion.is_truncated,
        )

    def _within(self, passages: Sequence[Passage]) -> Iterator[Passage]:
        """The passages to show; only a first passage that exceeds the limit is cut."""
        left = self.tokens
        for place, passage in enumerate(passages[: self.passages or None]):
            cost = estimate_tokens(self._shown([passage]))
            if self.tokens and cost > left:
                if place == 0:
                    yield self._cut(passage, left)
                return
            left -= cost
            yield passage

    def _cut(self, passage: Passage, tokens: int) -> Passage:
        """The start of the passage, up to the last whole word that fits."""
        spare = len(self._shown([passage])) - len(passage.text)
        room = max(tokens * CHARACTERS_PER_TOKEN - spare, 0)
        text = passage.text[:room]
        return msgspec.structs.replace(passage, text=text.rpartition(" ")[0] or text)


class FullContextReader(Llm):
    """Asks a model with all memories in the prompt, without recall."""

    wants_everything = True

    def __init__(
        self, model: str, prompt: str = "answer", tokens: int = 0, max_tokens: int = 0
    ) -> None:
        super().__init__(model, prompt, passages=0, tokens=tokens, max_tokens=max_tokens)


def plain_answer(reply: str) -> str:
    """The reply without thoughts, a lead such as "Answer:", and quotes around it."""
    text = without_thoughts(reply).strip()
    if lead := _LEAD.match(text):
        text = text[lead.end() :].strip()
    if len(text) > 1 and (closing := _QUOTES.get(text[0])) and text.endswith(closing):
        inner = text[1:-1]
        # '"Dune" and "Emma"' starts and ends with quotes that are not a pair.
        if text[0] not in inner and closing not in inner:
            text = inner.strip()
    return text
