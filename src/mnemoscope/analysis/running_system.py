"""The gate on what ran: embedder, truncation and versions, as the running system stated them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.analysis.checked_run import CheckedRun, value_at
from mnemoscope.protocols.required_embedders import RequiredEmbedder, required_embedder

_OF_BUILT_INS = frozenset({"spec", "arguments", "embedder"})
"""What a system that is part of the package records."""


def system_as_stated(case: CheckedRun) -> tuple[bool, str]:
    """Check the recorded system against itself, its pinned versions and the protocol."""
    recorded = value_at(case.manifest, "identity.system")
    system: Mapping[str, Any] = recorded if isinstance(recorded, Mapping) else {}
    if outside := _outside(system):
        return False, outside
    if other := system.get("other_versions"):
        named = ", ".join(f"{package} {version}" for package, version in sorted(other.items()))
        return False, f"other versions ran than those that were installed: {named}"
    given, stated = _embedder(system), _embedder(_hello(system).get("identity"))
    if given and stated and not _same(_model(given), _model(stated)):
        return False, f"it states embedder {_model(stated)}, but was given {_model(given)}"
    embedder = given or stated
    if case.chosen is not None:
        dataset = str(value_at(case.manifest, "identity.benchmark.name"))
        wanted = required_embedder(case.protocol, dataset)
        if problem := _deviation(wanted, embedder):
            return False, problem
    return True, f"{_described(embedder)}; {_versions(system)}"


def _outside(system: Mapping[str, Any]) -> str:
    """Why a run with answers from a file cannot be verified; empty for other runs."""
    if not system.get("answers_file"):
        return ""
    return (
        f"the answers were read from {system['answers_file']} (sha256 "
        f"{str(system.get('answers_sha256', ''))[:12]}…): they came from outside, no system was "
        "asked here, and what it was given is not known"
    )


def _deviation(wanted: RequiredEmbedder | str, embedder: Mapping[str, Any] | None) -> str:
    """How the recorded embedder differs from the one that the protocol demands."""
    if isinstance(wanted, str):
        return f"the protocol's rule cannot be checked: {wanted}" if wanted else ""
    rule = f"the protocol says {wanted.model}, cut at {wanted.max_tokens} tokens at most"
    if not embedder:
        return f"the system recorded no embedder; {rule}"
    if not _same(_model(embedder), wanted.model):
        return f"embedder {_model(embedder)}; {rule}"
    limit = embedder.get("max_tokens")
    if limit is None:
        return f"the system did not record at how many tokens it cuts texts; {rule}"
    return f"texts were cut at {limit} tokens; {rule}" if limit > wanted.max_tokens else ""


def _hello(system: Mapping[str, Any]) -> Mapping[str, Any]:
    hello = system.get("hello")
    return hello if isinstance(hello, Mapping) else {}


def _embedder(about: object) -> Mapping[str, Any] | None:
    """The embedder in an identity: an object with its model, or the model's name."""
    found = about.get("embedder") if isinstance(about, Mapping) else None
    if isinstance(found, str) and found:
        return {"model": found}
    return found if isinstance(found, Mapping) and found.get("model") else None


def _model(embedder: Mapping[str, Any]) -> str:
    return str(embedder["model"])


def _same(model: str, other: str) -> bool:
    """Whether two names mean one model: a local folder has only the last part of its name."""
    last, its = (name.rstrip("/").rpartition("/")[2].casefold() for name in (model, other))
    return last == its


def _described(embedder: Mapping[str, Any] | None) -> str:
    if not embedder:
        return "the system states no embedder"
    limit = embedder.get("max_tokens")
    cut = f", texts cut at {limit} tokens" if limit else ""
    return f"embedder {_model(embedder)}{cut}"


def _versions(system: Mapping[str, Any]) -> str:
    """The versions that the running system stated about itself."""
    hello, server = _hello(system), system.get("server")
    own = hello.get("identity") or system
    packages = own.get("versions") if isinstance(own, Mapping) else None
    if isinstance(packages, Mapping) and packages:
        return ", ".join(f"{package} {version}" for package, version in packages.items())
    for about in (hello, server, system):
        if isinstance(about, Mapping) and about.get("version"):
            return f"version {about['version']}"
    for name in ("source_sha256", "code_sha256"):
        if system.get(name):
            return f"code sha256 {str(system[name])[:12]}…"
    is_ours = system.keys() <= _OF_BUILT_INS
    return "part of mnemoscope" if is_ours else "the system states no version"
