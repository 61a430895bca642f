"""Prices of models: a dated table, which options of a model's spec override."""

from __future__ import annotations

import functools
import re
from importlib.resources import files
from pathlib import Path

import msgspec

from mnemoscope._store.yaml import parse_yaml

_RELEASE = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)?")


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars for a million tokens."""

    input: float
    output: float

    @property
    def is_free(self) -> bool:
        return not (self.input or self.output)

    def of(self, input_tokens: float, output_tokens: float) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


FREE = Price(0.0, 0.0)


class _Vendor(msgspec.Struct, forbid_unknown_fields=True):
    source: str
    models: dict[str, Price]


class PriceTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table in prices.yaml, and the month in which it was written."""

    written: str
    vendors: dict[str, _Vendor]


@functools.cache
def price_table() -> PriceTable:
    place = files("mnemoscope.models") / "prices.yaml"
    text = place.read_text(encoding="utf-8")
    return msgspec.convert(parse_yaml(text, Path(str(place))), PriceTable)


def known_price(vendor: str, model: str) -> Price | None:
    """The price of the longest listed name that this model is a release of; None for others."""
    if (listed := price_table().vendors.get(vendor)) is None:
        return None
    fitting = [
        name
        for name in listed.models
        if model.startswith(name) and _RELEASE.fullmatch(model.removeprefix(name))
    ]
    return listed.models[max(fitting, key=len)] if fitting else None
