"""Chat models by name: one string says which model, where, and how it is asked.

`openai:MODEL`, `anthropic:MODEL`, `azure:MODEL`, `MODEL@http://host/v1` for any server that speaks
OpenAI's protocol, the command-line agents `claude`, `codex` and `copilot`, `command:WORDS…`, the
embedded `smollm2`, `estimate:SPEC`, or `module:Factory`. Options ride behind a question mark, since
the commas belong to the specs of parts: `openai:gpt-4o-mini?timeout=60&temperature=0.5`.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mnemoscope._store.errors import UsageError
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
_OPTIONS_OF = {"embedded": _FOR_ALL, "command": _WITH_TIME, "factory": _FOR_ALL}
_LEAST = {"price_in": 0.0, "price_out": 0.0, "tries": 1, "max_tokens": 1, "temperature": 0.0}
_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"),
}


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
    built = _build(name.removeprefix("estimate:"), options)
    provider, price = built.provider, _price(options, built.price)
    if estimating:
        from mnemoscope.models.providers.wrappers import EstimateProvider

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


def names_a_model(spec: str) -> bool:
    """Whether this can be nothing but a model's spec; `module:Name` may be a reader or a judge."""
    name = spec.strip().partition("?")[0].removeprefix("estimate:")
    return _kind(name) not in (None, "factory")


def missing_keys(spec: str) -> list[str]:
    """The environment variables that this model needs and that are not set."""
    kind = _kind(spec.strip().partition("?")[0])
    return [name for name in _KEYS.get(kind or "", ()) if not os.environ.get(name, "").strip()]


def without_price(spec: str) -> str:
    """The spec without the options that decide no reply: prices, and how often to try."""
    name, mark, tail = spec.partition("?")
    kept = [
        pair
        for pair in tail.split("&")
        if pair.partition("=")[0] not in ("price_in", "price_out", "tries")
    ]
    return f"{name}{mark}{'&'.join(kept)}" if any(kept) else name


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


def _build(name: str, options: dict[str, float]) -> _Built:
    kind = _kind(name)
    rest = name.partition(":")[2]
    if kind in _VENDORS and re.search(r"@https?://", rest):
        raise UsageError("a model at an address has no vendor: write MODEL@http://host/v1")
    for option in options:
        allowed = _OPTIONS_OF.get(kind or "", _OVER_HTTP)
        if option not in allowed:
            raise UsageError(f"{name} has no {option!r}; it has {', '.join(allowed)}")
    settings: dict[str, Any] = {k: options[k] for k in ("timeout", "temperature") if k in options}
    match kind:
        case "openai":
            from mnemoscope.models.providers.openai_chat import OpenAIProvider

            return _Built(OpenAIProvider(rest, **settings), known_price("openai", rest))
        case "azure":
            from mnemoscope.models.providers.openai_chat import AzureProvider

            # MODEL is whatever the deployment was called; no price follows from it.
            return _Built(AzureProvider(rest, **settings), None)
        case "anthropic":
            from mnemoscope.models.providers.anthropic_chat import AnthropicProvider

            return _Built(AnthropicProvider(rest, **settings), known_price("anthropic", rest))
        case "server":
            from mnemoscope.models.providers.openai_chat import CompatibleProvider

            model, url, is_near = _server(name)
            provider = CompatibleProvider(model, base_url=url, **settings)
            return _Built(provider, FREE if is_near else None)
        case "embedded":
            from mnemoscope.models.providers.smollm2 import EmbeddedProvider

            return _Built(EmbeddedProvider(), FREE)
        case "command":
            from mnemoscope.models.providers.command_chat import CommandProvider

            words = rest if name.startswith("command:") else name
            # A command does not tell what it bills, nor whether it is still the same one.
            return _Built(CommandProvider(words, **settings), None, cache=False)
        case "factory":
            from mnemoscope.models.providers.wrappers import CustomProvider

            # What it bills is not known. Without an identity no reply may be kept either: its
            # code may be the same and what it asks another.
            made = CustomProvider(name)
            return _Built(made, None, cache=made.has_identity)
    known = [*AGENTS, "smollm2"]
    raise UsageError(
        f"{name!r} is no model: {did_you_mean(name, known)}write openai:MODEL, anthropic:MODEL, "
        f"azure:MODEL, MODEL@http://host/v1, {', '.join(known)}, command:WORDS…, estimate:SPEC or "
        "module:Factory"
    )


def _server(name: str) -> tuple[str, str, bool]:
    """Model and address of MODEL@URL, and whether the server is the user's own: such cost nothing.

    What other servers cost is not known.
    """
    found = _SERVER.fullmatch(name)
    assert found is not None
    url = found["url"]
    try:
        address = urlsplit(url)
        host = address.hostname
        _ = address.port
    except ValueError:
        host = None
    if not host or "@" in url or "?" in url or "#" in url:
        # The address is not shown: it may hold a password.
        raise UsageError(
            "cannot read the address in MODEL@http://host/v1; it is recorded with the run, so it "
            "may hold no user, password or query: put the key into MNEMOSCOPE_MODEL_KEY"
        )
    try:
        number = ipaddress.ip_address(host)
        is_near = number.is_private or number.is_loopback or number.is_link_local
    except ValueError:
        is_near = "." not in host or host.endswith((".local", ".lan", ".internal", ".localhost"))
    return found["model"], url, is_near


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


def _price(options: dict[str, float], known: Price | None) -> Price | None:
    given = [options.get(key) for key in ("price_in", "price_out")]
    if all(price is None for price in given):
        return known
    if known is None and None in given:
        raise UsageError("a price has two sides: give both price_in=… and price_out=…")
    return Price(
        *(new if new is not None else old for new, old in zip(given, known or FREE, strict=True))
    )
