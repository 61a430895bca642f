"""Chat models by name: one string says which model, where, and how it is asked.

`openai:MODEL`, `anthropic:MODEL`, `azure:MODEL`, `MODEL@http://host/v1` for any server that speaks
OpenAI's protocol, the command-line agents `claude`, `codex` and `copilot`, `command:WORDS…`, the
embedded `smollm2`, `estimate:SPEC`, or `module:Factory`. Options ride behind a question mark, since
the commas belong to the specs of parts: `openai:gpt-4o-mini?timeout=60&temperature=0.5`.
"""

from __future__ import annotations

import importlib
import ipaddress
import math
import os
import re
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mnemoscope._store.errors import MissingExtra, UsageError
from mnemoscope._store.suggest import did_you_mean
from mnemoscope.models.chat import Provider
from mnemoscope.models.model import TRIES, Model
from mnemoscope.models.prices import FREE, Price, known_price

AGENTS = ("claude", "codex", "copilot")
_VENDORS = ("openai", "anthropic", "azure")
_SERVER = re.compile(r"(?P<model>[^@\s]+(?:@[^@\s]+)*?)@(?P<url>https?://\S+)", re.I)
_FACTORY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_OPTIONS = re.compile(r"(?P<spec>.*?)\?(?P<options>[^?\s/]*)")
_OPTION = re.compile(r"(?P<name>\w+)=(?P<value>[^&]*)")

_FOR_ALL = ("price_in", "price_out", "tries", "max_tokens")
_WITH_TIME = (*_FOR_ALL, "timeout")
_OVER_HTTP = (*_WITH_TIME, "temperature")
_LEAST = {"price_in": 0.0, "price_out": 0.0, "tries": 1, "max_tokens": 1, "temperature": 0.0}


class _Built(NamedTuple):
    provider: Provider
    price: Price | None
    cache: bool = True


def load_model(spec: str, *, cache: bool = True) -> Model:
    """The model behind a spec. Opens no connection and needs no key: the first request does.

    Args:
        cache: Whether replies are kept for, and taken from, other runs.
    """
    name, options = _parted(spec.strip())
    estimating = name.startswith("estimate:")
    target = name.removeprefix("estimate:")
    built = _build(target, options, extras=not estimating)
    provider, price = built.provider, _price(options, built.price)
    if estimating:
        from mnemoscope.models.providers.estimate import EstimateProvider

        provider = EstimateProvider(provider)
    limit = options.get("max_tokens")
    return Model(
        name,
        provider,
        price=price,
        tries=int(options.get("tries", TRIES)),
        max_tokens=None if limit is None else int(limit),
        cache=cache and built.cache,
        estimating=estimating,
    )


def is_model(spec: str) -> bool:
    """Whether this reads as a model's spec, `module:Factory` included; loads nothing."""
    try:
        name, _ = _parted(spec.strip())
    except UsageError:
        return False
    return _kind(name.removeprefix("estimate:")) is not None


def names_a_model(spec: str) -> bool:
    """Whether this can be nothing but a model's spec; `module:Name` may be a reader or a judge."""
    name = spec.strip().partition("?")[0].removeprefix("estimate:")
    return _kind(name) not in (None, "factory")


def missing_keys(spec: str) -> list[str]:
    """The environment variables that this model needs and that are not set."""
    kind = _kind(spec.strip().partition("?")[0])
    return [name for name in _KEYS.get(kind or "", ()) if not os.environ.get(name, "").strip()]


_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"),
}


def without_price(spec: str) -> str:
    """The spec without the options that decide no reply: prices, and how often to try."""
    name, mark, tail = spec.partition("?")
    kept = [pair for pair in tail.split("&") if pair.partition("=")[0] not in _UNDECISIVE]
    return f"{name}{mark}{'&'.join(kept)}" if any(kept) else name


_UNDECISIVE = ("price_in", "price_out", "tries")


def _kind(name: str) -> str | None:
    if name == "smollm2" or name in AGENTS:
        return "embedded" if name == "smollm2" else "command"
    prefix, colon, rest = name.partition(":")
    if colon and rest.strip() and prefix == "command":
        return "command"
    if colon and prefix in _VENDORS:
        return prefix if re.fullmatch(r"\S+", rest) else None
    if _SERVER.fullmatch(name):
        return "server"
    return "factory" if _FACTORY.fullmatch(name) else None


def _build(name: str, options: dict[str, float], *, extras: bool) -> _Built:
    kind = _kind(name)
    rest = name.partition(":")[2]
    if kind in _VENDORS and re.search(r"@https?://", rest):
        raise UsageError("a model at an address has no vendor: write MODEL@http://host/v1")
    if kind in ("openai", "azure", "server") and extras:
        _require("openai")
    if kind == "anthropic" and extras:
        _require("anthropic")
    settings: dict[str, Any] = {k: options[k] for k in ("timeout", "temperature") if k in options}
    allowed = {"embedded": _FOR_ALL, "command": _WITH_TIME, "factory": _FOR_ALL}
    _check_options(name, options, allowed.get(kind or "", _OVER_HTTP))
    match kind:
        case "openai":
            from mnemoscope.models.providers.openai_chat import OpenAIProvider

            return _Built(OpenAIProvider(rest, **settings), known_price("openai", rest))
        case "azure":
            from mnemoscope.models.providers.openai_chat import AzureProvider

            # MODEL is whatever the deployment was called; nothing follows from it.
            return _Built(AzureProvider(rest, **settings), None)
        case "anthropic":
            from mnemoscope.models.providers.anthropic_chat import AnthropicProvider

            return _Built(AnthropicProvider(rest, **settings), known_price("anthropic", rest))
        case "server":
            return _server(name, settings)
        case "embedded":
            from mnemoscope.models.providers.smollm2 import EmbeddedProvider

            return _Built(EmbeddedProvider(), FREE)
        case "command":
            from mnemoscope.models.providers.command_chat import CommandProvider

            words = rest if name.startswith("command:") else name
            # What a command bills, and whether it is still the same one, nobody tells us.
            return _Built(CommandProvider(words, **settings), None, cache=False)
        case "factory":
            from mnemoscope.models.providers.custom import ForeignProvider

            # What it bills, nobody tells us. Without an identity nothing may be kept either: its
            # code may be the same and what it asks another.
            made = ForeignProvider(name)
            return _Built(made, None, cache=made.has_identity)
    raise UsageError(_unknown(name))


def _server(name: str, settings: dict[str, Any]) -> _Built:
    from mnemoscope.models.providers.openai_chat import CompatibleProvider

    found = _SERVER.fullmatch(name)
    assert found is not None
    try:
        address = urlsplit(found["url"])
        host = address.hostname
        _ = address.port
    except ValueError:
        host = None
    if not host or "@" in found["url"] or "?" in found["url"] or "#" in found["url"]:
        # The address is not shown: it may hold a password.
        raise UsageError(
            "cannot read the address in MODEL@http://host/v1; it is recorded with the run, so it "
            "may hold no user, password or query: put the key into MNEMOSCOPE_MODEL_KEY"
        )
    provider = CompatibleProvider(found["model"], base_url=found["url"], **settings)
    return _Built(provider, FREE if _is_near(host) else None)


def _is_near(host: str) -> bool:
    """Whether a server is one's own: such cost nothing, others cost nobody knows what."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".localhost"))
    return address.is_private or address.is_loopback or address.is_link_local


def _parted(spec: str) -> tuple[str, dict[str, float]]:
    """The spec without its options, and the options."""
    found = _OPTIONS.fullmatch(spec)
    if found is None:
        return spec, {}
    pairs = found["options"].split("&")
    options: dict[str, float] = {}
    for pair in pairs:
        parts = _OPTION.fullmatch(pair)
        if parts is None or (parts["name"] not in _OVER_HTTP and spec.startswith("command:")):
            if spec.startswith("command:"):
                return spec, {}
            raise UsageError(
                "cannot read the options behind the ? of a model; write "
                "MODEL?timeout=60&temperature=0"
            )
        name = parts["name"]
        if name in options:
            raise UsageError(f"the option {name!r} of a model is given twice")
        options[name] = _number(name, parts["value"])
    return found["spec"], options


def _number(name: str, text: str) -> float:
    if name not in _OVER_HTTP:
        # Its value is not shown: people put keys into addresses.
        hint = did_you_mean(name, _OVER_HTTP)
        raise UsageError(f"a model has no option {name!r}: {hint}it has {', '.join(_OVER_HTTP)}")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    whole = name in ("tries", "max_tokens")
    too_small = number < _LEAST[name] if name in _LEAST else number <= 0
    if not math.isfinite(number) or too_small or (whole and number != int(number)):
        kind = "a whole number" if whole else "a number"
        raise UsageError(f"{name}={text} is not possible; {name} is {kind} above zero")
    return number


def _check_options(name: str, options: dict[str, float], allowed: tuple[str, ...]) -> None:
    for option in options:
        if option not in allowed:
            raise UsageError(f"{name} has no {option!r}; it has {', '.join(allowed)}")


def _price(options: dict[str, float], known: Price | None) -> Price | None:
    given = [options.get(key) for key in ("price_in", "price_out")]
    if all(price is None for price in given):
        return known
    if known is None and None in given:
        raise UsageError("a price has two sides: give both price_in=… and price_out=…")
    return Price(
        *(new if new is not None else old for new, old in zip(given, known or FREE, strict=True))
    )


def _require(sdk: str) -> None:
    """Import it now: it takes seconds, and worker processes are forked from this one."""
    if find_spec(sdk) is None:
        raise MissingExtra(f"a model over {sdk}'s protocol", f"pip install 'mnemoscope[{sdk}]'")
    importlib.import_module(sdk)
    importlib.import_module("mnemoscope.models.deadline")


def _unknown(name: str) -> str:
    known = [*AGENTS, "smollm2"]
    hint = did_you_mean(name, known)
    return (
        f"{name!r} is no model: {hint}write openai:MODEL, anthropic:MODEL, azure:MODEL, "
        f"MODEL@http://host/v1, {', '.join(known)}, command:WORDS…, estimate:SPEC or module:Factory"
    )
