"""The binary judge: a model says whether an answer is CORRECT or WRONG, by a strict prompt."""

from __future__ import annotations

from typing import Any

from mnemoscope.judges import ACCURACY, Case
from mnemoscope.judges.exact import without_asking
from mnemoscope.judges.model_judge import HOLES, NEEDED, fill, read_verdict, settle
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prompts import load_prompt
from mnemoscope.types import Grade, Scenario


class Binary:
    """1 for an answer with the same facts as the reference, 0 for any other.

    Questions that have no answer and no reference are decided by whether the system abstained, and
    an empty answer is wrong; neither is sent anywhere.
    """

    scale = ACCURACY

    def __init__(self, model: str, prompt: str = "judge-binary") -> None:
        self._model = load_model(model)
        self._prompt = load_prompt(prompt, HOLES, NEEDED)

    def identity(self) -> dict[str, Any]:
        return {"model": self._model.identity(), **self._prompt.identity()}

    def begin(self, scenario: Scenario) -> None:
        """Nothing to prepare: each case stands for itself."""

    def judge(self, case: Case) -> Grade:
        if (settled := without_asking(case)) is not None:
            return settled
        return settle(self._model, fill(self._prompt, case), read_verdict)
