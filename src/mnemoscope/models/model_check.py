"""Whether a model can be asked at all, and whether a limit of dollars can hold."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from mnemoscope._store.errors import UsageError
from mnemoscope.models.model_loader import load_model, missing_keys


def priced(model: str) -> str:
    """How to write the model with its price."""
    return f"{model}{'&' if '?' in model else '?'}price_in=…&price_out=…"


def check_models(models: Sequence[str], max_cost: float | None) -> None:
    """Refuse before anything is written what the first request would be refused for."""
    if max_cost is not None and not 0 < max_cost < inf:
        raise UsageError(f"--max-cost {max_cost}: it is more than 0 dollars")
    for model in models:
        if missing := missing_keys(model):
            raise UsageError(f"{model} needs {' and '.join(missing)} in the environment")
        if max_cost is not None and load_model(model).price is None:
            raise UsageError(
                f"what {model} costs is not known, so --max-cost cannot hold; give its price in "
                f"dollars for a million tokens, 0 if it costs nothing: '{priced(model)}'"
            )
