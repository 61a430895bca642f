"""Questions that a model words: it gets the memories of a candidate and the rules to follow."""

from __future__ import annotations

from collections.abc import Iterator

from mnemoscope.datasets.strata_rules import StrataRules, StratumQuestion
from mnemoscope.drafting.draft import Draft
from mnemoscope.models.chat import ModelFailure
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prompts import load_prompt
from mnemoscope.models.replies import parse_json, without_thoughts
from mnemoscope.text.tokenize import stems

_TRIES = 2
_HOLES = frozenset(("task", "memories", "example", "problem"))
_TASKS = {
    "exact": "Ask for what the memory says, with its own rare words and names.",
    "paraphrase": (
        "Ask for what the memory says in other words: use none of its nouns and verbs, except that "
        "you may name one person."
    ),
    "multihop": "Ask one question that needs both memories: neither of them alone answers it.",
    "update": (
        "Ask for the present state. The memories marked as earlier are out of date; the last one "
        "answers the question."
    ),
    "absent": (
        "Improve the wording of the example only. No memory answers it, and that must stay so: "
        "keep every name and every thing in it."
    ),
}


class ModelDrafts:
    """Lets a model word the candidates of the templates."""

    def __init__(self, spec: str, rules: StrataRules) -> None:
        self._spec = spec
        self._model = load_model(spec)
        self._prompt = load_prompt("draft-question", _HOLES, _HOLES)
        self._rules = rules

    def rewritten(self, drafts: Iterator[Draft]) -> Iterator[tuple[Draft, str]]:
        """Each candidate in the model's words, else as it is, with who worded it.

        The model's wording is used only if it follows the rules of the stratum.
        """
        for draft in drafts:
            worded = self._worded(draft)
            yield (worded, self._spec) if worded is not None else (draft, "templates")

    def _worded(self, draft: Draft) -> Draft | None:
        problem = ""
        for attempt in range(_TRIES):
            prompt = self._prompt.fill(
                task=_TASKS[draft.stratum],
                memories=self._shown(draft),
                example=draft.text,
                problem=problem
                and f"Your last question was refused: {problem}. Write another one.",
            )
            try:
                reply = parse_json(without_thoughts(self._model.ask(prompt)))
            except (ModelFailure, ValueError) as error:
                problem = str(error)
                continue
            text, answer = (str(reply.get(name, "")).strip() for name in ("question", "answer"))
            asked = StratumQuestion("", text, draft.stratum, draft.gold, draft.superseded)
            broken = self._rules.broken(asked) if text else []
            if text and not broken:
                note = f"attempt {attempt + 1}"
                return draft._replace(text=text, answer=self._entitled(answer, draft), note=note)
            problem = broken[0].detail if broken else "the question is empty"
        return None

    def _entitled(self, answer: str, draft: Draft) -> str:
        """The answer if the memories have all its words, else none: models invent some."""
        said = {stem for id in draft.gold for stem in self._rules.terms[id]}
        return answer if set(stems(answer)) <= said else ""

    def _shown(self, draft: Draft) -> str:
        memories = self._rules.memories
        lines = [f"[earlier] {memories[id].text}" for id in draft.superseded]
        return "\n".join([*lines, *(memories[id].text for id in draft.gold)]) or "(none)"
