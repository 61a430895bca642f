"""LongMemEval's judge: the official rules in our words, or any of our deviations, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar, Literal

from msgspec.structs import replace

from mnemoscope._store.errors import UsageError
from mnemoscope.judges import ACCURACY, Case, EachCaseAlone, Unjudged
from mnemoscope.judges.longmemeval_rules import ALL_KINDS, DEFAULT, RULES, resolve, sentences
from mnemoscope.judges.model_judges import HOLES, NEEDED, fenced, read_object, read_verdict, settle
from mnemoscope.judges.plain_judges import without_asking
from mnemoscope.models.chat import Prompt
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prompts import is_own, load_family
from mnemoscope.models.replies import without_thoughts
from mnemoscope.types import Grade

_ABSTENTION = "abstention"
TYPE_PROMPTS = {
    "single-session-user": "single-session",
    "single-session-assistant": "single-session",
    "single-session-preference": "single-session-preference",
    "multi-session": "multi-session",
    "temporal-reasoning": "temporal-reasoning",
    "knowledge-update": "knowledge-update",
}
_OUR_HOLES = HOLES | {"rules", "guard", "form", "asked"}
_SHORT = 10
"""The longest reply in tokens where only yes or no is asked for, as in the official script."""
_SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "verdict": {"type": "string", "enum": ["yes", "no"]},
    },
    "required": ["reasoning", "verdict"],
    "additionalProperties": False,
}
_YES_NO = re.compile(r"[\s*_\"'`#>-]*(yes|no)\b[*_\"'`]*(?=\s*(?:\Z|[.,;!\n—–-]))", re.IGNORECASE)
_GAPS = re.compile(r"\n{3,}")
_WORDS = {"yes": 1.0, "no": 0.0}

AcceptReject = Literal["default", "accept", "reject"]


class LongMemEvalJudge(EachCaseAlone):
    """A prompt per question type, one for abstentions; `rules=strict` sets all deviations.

    `prompt` is the prefix of six prompt files, one per type and abstention, or one file for all: a
    YAML file of ours, or the text of an official prompt. The category of the question is its type.
    A question of an unknown type is unjudged.
    """

    scale = ACCURACY
    needs: ClassVar[Mapping[str, str]] = {
        "longmemeval question types": "the longmemeval judge supports no question type of {dataset}"
    }

    def __init__(
        self,
        model: str,
        prompt: str = "judge-longmemeval",
        rules: Literal["official", "strict"] = "official",
        steps: AcceptReject = "default",
        surplus: AcceptReject = "default",
        vague: Literal["default", "unsaid", "reject"] = "default",
        off_by_one: AcceptReject = "default",
        outdated: Literal["default", "beside", "settled"] = "default",
        guess: AcceptReject = "default",
        date: Literal["default", "hidden", "shown"] = "default",
        guard: Literal["default", "off", "on"] = "default",
        empty: Literal["default", "ask", "wrong"] = "default",
        verdict: Literal["default", "anywhere", "strict"] = "default",
    ) -> None:
        own = locals()
        given = {rule.name: str(own[rule.name]) for rule in RULES}
        self._model = load_model(model)
        self.rules = resolve(rules, given)
        self._is_own = is_own(prompt)
        if self._is_own:
            _refuse_wording(given)
        self._prompts = load_family(prompt, ALL_KINDS, _OUR_HOLES, NEEDED)

    def identity(self) -> dict[str, Any]:
        known = {kind: prompt.identity() for kind, prompt in self._prompts.items()}
        texts = [sentences(kind, self.rules) for kind in ALL_KINDS]
        return {
            "model": self._model.identity(),
            "prompts": known,
            "rules": self.rules,
            "rules_sha256": sha256(repr(texts).encode()).hexdigest(),
        }

    def judge(self, case: Case) -> Grade:
        question = case.question
        abstains = question.expects == "abstain"
        if not abstains and question.category not in TYPE_PROMPTS:
            raise Unjudged(
                f"question {question.id}: {question.category!r} is not a question type of "
                f"LongMemEval ({', '.join(TYPE_PROMPTS)}); use the judge binary for other "
                "datasets"
            )
        asks_anyway = self.rules["empty"] == "ask" and question.reference.strip()
        if not asks_anyway and (settled := without_asking(case)) is not None:
            return settled
        kind = _ABSTENTION if abstains else TYPE_PROMPTS[question.category]
        asked = self.filled(kind, case)
        return settle(self._model, asked, self._read)

    def filled(self, kind: str, case: Case) -> Prompt:
        """The prompt of this kind under the rules, with this case."""
        question, prompt = case.question, self._prompts[kind]
        day = "an unknown day" if question.now is None else f"{question.now:%A, %d %B %Y}"
        shown = self.rules["date"] == "shown"
        guarded = self.rules["guard"] == "on"
        filled = prompt.fill(
            question=question.text,
            reference=question.reference,
            answer=fenced("answer", case.answer) if guarded else case.answer,
            now=day,
            asked=f", asked on {day}" if shown else "",
            **sentences(kind, self.rules),
        )
        if not self._is_own:  # rules without a sentence leave gaps
            filled = replace(filled, system=_GAPS.sub("\n\n", filled.system))
            filled = replace(filled, system=filled.system.replace("  ", " "))
        if self.rules["verdict"] == "anywhere":
            return replace(filled, max_tokens=_SHORT, schema=None)
        return filled if self._is_own else replace(filled, schema=_SCHEMA)

    def _read(self, reply: str) -> Grade:
        if self.rules["verdict"] == "anywhere":
            return Grade(float("yes" in reply.lower()), reply.strip())
        return read_yes_no(reply)


def _refuse_wording(given: Mapping[str, str]) -> None:
    """A prompt of the user's own states its rules itself."""
    apart = ("date", "empty", "verdict")
    named = [name for name, value in given.items() if value != DEFAULT and name not in apart]
    if named:
        raise UsageError(
            f"{named[0]} changes the wording of our prompts, and prompt=FILE has its own; with it "
            f"only {', '.join(apart)} can be chosen"
        )


def read_yes_no(reply: str) -> Grade:
    """Yes or no from the first word or from a JSON object; CORRECT and WRONG count, too."""
    plain = without_thoughts(reply)
    if first := _YES_NO.match(plain):
        rest = plain[first.end() :].partition("\n")[0]
        if re.search(r"\b(?:yes|no)\b", rest, re.IGNORECASE):
            raise ValueError("its first line holds more than one verdict")
        return Grade(_WORDS[first[1].lower()], plain[first.end() :].lstrip(" .,;!\n—–-").rstrip())
    if plain.strip().startswith(("{", "```")):
        content = read_object(plain)
        word = str(content.get("verdict") or "").strip().lower()
        if word in _WORDS:
            return Grade(_WORDS[word], str(content.get("reasoning") or ""))
    try:
        return read_verdict(plain)
    except ValueError:
        raise ValueError('it holds no "verdict" that is yes or no') from None
