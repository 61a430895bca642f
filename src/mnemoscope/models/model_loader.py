"""Chat models by name: one string names the model, its server and its options.

`openai:MODEL`, `anthropic:MODEL`, `azure:MODEL`, `MODEL@http://host/v1` for any server that speaks
OpenAI's protocol, the command-line agents `claude`, `codex` and `copilot`, `command:WORDS…`, the
embedded `smollm2`, `local:PATH.gguf` or `local:NAME` for a model file, `estimate:SPEC`, or
`module:Factory`. Options follow a question mark, because the specs of readers and judges use the
comma: `openai:gpt-4o-mini?timeout=60&temperature=0.5`.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from mnemoscope._store.errors import UsageError
from mnemoscope._store.suggest import did_you_mean
from mnemoscope.models.chat import Provider
from mnemoscope.models.http_errors import setting
from mnemoscope.models.model import TRIES, Model
from mnemoscope.models.prices import FREE, Price, known_price

if TYPE_CHECKING:
    from mnemoscope.models.providers.local_chat import LocalProvider

AGENTS = ("claude", "codex", "copilot")
_VENDORS = ("openai", "anthropic", "azure")
_SERVER = re.compile(r"(?P<model>[^@\s]+(?:@[^@\s]+)*?)@(?P<url>https?://\S+)", re.I)
_FACTORY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_OPTIONS = re.compile(r"(?P<spec>.*?)\?(?P<options>[^?\s/]*)")
_OPTION = re.compile(r"(?P<name>\w+)=(?P<value>[^&]*)")

_FOR_ALL = ("price_in", "price_out", "tries", "max_tokens")
_WITH_TIME = (*_FOR_ALL, "timeout")
_OVER_HTTP = (*_WITH_TIME, "temperature")
_LOCAL = (*_FOR_ALL, "context", "threads")
_OPTIONS_OF = {
    "embedded": _FOR_ALL,
    "local": _LOCAL,
    "command": _WITH_TIME,
    "factory": _FOR_ALL,
}
_ALL_OPTIONS = tuple(dict.fromkeys((*_OVER_HTTP, *_LOCAL)))
_WHOLE = ("tries", "max_tokens", "context", "threads")
_LEAST = {"price_in": 0.0, "price_out": 0.0, "temperature": 0.0, **dict.fromkeys(_WHOLE, 1)}
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
    """The model of a spec. Opens no connection and needs no key: the first request does.

    Args:
        cache: Whether to share replies with other runs.
    """
    name, options = _split(spec.strip())
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


def load_local(spec: str) -> LocalProvider:
    """The model of a spec that runs in this process, for its probabilities."""
    name, options = _split(spec.strip())
    if _kind(name) not in ("embedded", "local"):
        raise UsageError(
            f"{name!r} gives no probabilities of a text: use smollm2, or local:PATH.gguf"
        )
    provider = _build(name, options).provider
    return cast("LocalProvider", provider)


def names_a_model(spec: str) -> bool:
    """Whether this must be a model's spec; `module:Name` may also be a reader or a judge."""
    name = spec.strip().partition("?")[0].removeprefix("estimate:")
    return _kind(name) not in (None, "factory")


def missing_keys(spec: str) -> list[str]:
    """The environment variables that this model needs and that are not set."""
    kind = _kind(spec.strip().partition("?")[0])
    return [name for name in _KEYS.get(kind or "", ()) if not setting(name)]


def priced(spec: str) -> str:
    """The spec with placeholders for its price."""
    return f"{spec}{'&' if '?' in spec else '?'}price_in=…&price_out=…"


def check_models(specs: Sequence[str], max_cost: float | None) -> None:
    """Refuse, before anything is written, models without a key or, under a limit, a price."""
    if max_cost is not None and not 0 < max_cost < math.inf:
        raise UsageError(f"--max-cost {max_cost}: it must be more than 0 dollars")
    for spec in specs:
        if missing := missing_keys(spec):
            raise UsageError(f"{spec} needs {' and '.join(missing)} in the environment")
        if max_cost is not None and load_model(spec).price is None:
            raise UsageError(
                f"the price of {spec} is not known, so --max-cost cannot be enforced; give it in "
                f"dollars for a million tokens, 0 if the model costs nothing: '{priced(spec)}'"
            )


def without_price(spec: str) -> str:
    """The spec without the options that do not affect replies: prices and tries."""
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
    if colon and rest.strip() and prefix == "local":
        return "local"
    if colon and prefix in _VENDORS:
        return prefix if re.fullmatch(r"\S+", rest) else None
    if _SERVER.fullmatch(name):
        return "server"
    return "factory" if _FACTORY.fullmatch(name) else None


def _build(name: str, options: dict[str, float]) -> _Built:
    kind = _kind(name)
    rest = name.partition(":")[2]
    if kind in _VENDORS and re.search(r"@https?://", rest):
        raise UsageError("a model at an address takes no vendor: write MODEL@http://host/v1")
    for option in options:
        allowed = _OPTIONS_OF.get(kind or "", _OVER_HTTP)
        if option not in allowed:
            raise UsageError(f"{name} has no option {option!r}; it has {', '.join(allowed)}")
    settings: dict[str, Any] = {k: options[k] for k in ("timeout", "temperature") if k in options}
    match kind:
        case "openai":
            from mnemoscope.models.providers.openai_chat import OpenAIProvider

            return _Built(OpenAIProvider(rest, **settings), known_price("openai", rest))
        case "azure":
            from mnemoscope.models.providers.openai_chat import AzureProvider

            # MODEL is the name of the deployment, which does not determine a price.
            return _Built(AzureProvider(rest, **settings), None)
        case "anthropic":
            from mnemoscope.models.providers.anthropic_chat import AnthropicProvider

            return _Built(AnthropicProvider(rest, **settings), known_price("anthropic", rest))
        case "server":
            from mnemoscope.models.providers.openai_chat import CompatibleProvider

            model, url, is_local = _server(name)
            provider = CompatibleProvider(model, base_url=url, **settings)
            return _Built(provider, FREE if is_local else None)
        case "embedded":
            from mnemoscope.models.providers.smollm2 import EmbeddedProvider

            return _Built(EmbeddedProvider(), FREE)
        case "local":
            from mnemoscope.models.local_files import local_file
            from mnemoscope.models.providers.local_chat import LocalProvider

            sizes = {k: int(options[k]) for k in ("context", "threads") if k in options}
            return _Built(LocalProvider(local_file(rest), **sizes), FREE)
        case "command":
            from mnemoscope.models.providers.command_chat import CommandProvider

            words = rest if name.startswith("command:") else name
            # A command reports neither its price nor whether it has changed.
            return _Built(CommandProvider(words, **settings), None, cache=False)
        case "factory":
            from mnemoscope.models.providers.wrappers import CustomProvider

            # Its price is not known. Without an identity its replies are not cached: the same
            # code may ask another model.
            made = CustomProvider(name)
            return _Built(made, None, cache=made.has_identity)
    known = [*AGENTS, "smollm2"]
    raise UsageError(
        f"{name!r} is not a model: {did_you_mean(name, known)}write openai:MODEL, anthropic:MODEL, "
        f"azure:MODEL, MODEL@http://host/v1, {', '.join(known)}, local:PATH.gguf, command:WORDS…, "
        "estimate:SPEC or module:Factory"
    )


def _server(name: str) -> tuple[str, str, bool]:
    """Model and address of MODEL@URL, and whether the server is in a local network.

    Local servers cost nothing; the price of others is not known.
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
        # The address is not shown: it may contain a password.
        raise UsageError(
            "cannot read the address in MODEL@http://host/v1; it is recorded with the run, so it "
            "may not contain a user, password or query: put the key into MNEMOSCOPE_MODEL_KEY"
        )
    try:
        number = ipaddress.ip_address(host)
        is_local = number.is_private or number.is_loopback or number.is_link_local
    except ValueError:
        is_local = "." not in host or host.endswith((".local", ".lan", ".internal", ".localhost"))
    return found["model"], url, is_local


def _split(spec: str) -> tuple[str, dict[str, float]]:
    """The spec without its options, and the options."""
    found = _OPTIONS.fullmatch(spec)
    if found is None:
        return spec, {}
    options: dict[str, float] = {}
    for pair in found["options"].split("&"):
        parts = _OPTION.fullmatch(pair)
        if parts is None or (parts["name"] not in _ALL_OPTIONS and spec.startswith("command:")):
            if spec.startswith("command:"):
                return spec, {}
            raise UsageError(
                "cannot read the options after the ? of a model; write "
                "MODEL?timeout=60&temperature=0"
            )
        name = parts["name"]
        if name in options:
            raise UsageError(f"the option {name!r} of a model is given twice")
        options[name] = _number(name, parts["value"])
    return found["spec"], options


def _number(name: str, text: str) -> float:
    if name not in _ALL_OPTIONS:
        # Its value is not shown: it may be a key.
        hint = did_you_mean(name, _ALL_OPTIONS)
        raise UsageError(f"a model has no option {name!r}: {hint}it has {', '.join(_ALL_OPTIONS)}")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    whole = name in _WHOLE
    too_small = number < _LEAST[name] if name in _LEAST else number <= 0
    if not math.isfinite(number) or too_small or (whole and number != int(number)):
        kind = "a whole number" if whole else "a number"
        raise UsageError(f"{name}={text} is not possible; {name} is {kind} above zero")
    return number


def _price(options: dict[str, float], known: Price | None) -> Price | None:
    given = {"price_in", "price_out"} & options.keys()
    if not given:
        return known
    if known is None and len(given) < 2:
        raise UsageError("a price has two parts: give both price_in=… and price_out=…")
    old = known or FREE
    return Price(options.get("price_in", old.input), options.get("price_out", old.output))
