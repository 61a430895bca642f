"""`verify` checks embedder, truncation and versions as the running system recorded them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.checked_run import CheckedRun
from mnemoscope.analysis.gates import check_gate
from mnemoscope.integrations.environments import lock_file, other_versions
from mnemoscope.protocols import load_protocol, protocol_names
from mnemoscope.protocols.required_embedders import required_embedder


def _gate(system: dict[str, Any], protocol: str, dataset: str = "locomo") -> tuple[bool, str]:
    chosen = load_protocol(protocol) if protocol else None
    manifest = Manifest("f", {"benchmark": {"name": dataset}, "system": system}, started=None)
    case = CheckedRun(RunDirectory(Path("nowhere")), manifest, chosen, None)
    found = check_gate("system", case)
    return found.passed, found.why


PGMNEMO = "pgmnemo-recall-1.0.0"
DRAGON = {"model": "dragon-plus", "max_tokens": 512}


def test_the_embedder_of_the_protocol_passes() -> None:
    assert _gate({"embedder": DRAGON}, PGMNEMO)[0]
    hello = {"version": "1.2", "identity": {"embedder": "facebook/dragon-plus"}}
    assert _gate({"embedder": DRAGON, "hello": hello}, PGMNEMO)[0]


@pytest.mark.parametrize(
    ("system", "why"),
    [
        ({}, "the system recorded no embedder"),
        ({"embedder": {"model": "minilm", "max_tokens": 512}}, "embedder minilm; the protocol"),
        ({"embedder": {"model": "facebook/dragon-plus"}}, "at how many tokens"),
        ({"embedder": DRAGON | {"max_tokens": 8192}}, "texts were cut at 8192 tokens"),
        ({"embedder": DRAGON | {"max_tokens": "many"}}, "cannot be checked"),
        ({"hello": {"identity": {"embedder": "bge-m3"}}}, "embedder bge-m3"),
    ],
)
def test_another_embedder_than_the_protocols_is_the_reason(
    system: dict[str, Any], why: str
) -> None:
    passed, reason = _gate(system, PGMNEMO)

    assert not passed
    assert why in reason


def test_the_embedder_depends_on_the_benchmark() -> None:
    assert not _gate({"embedder": DRAGON}, PGMNEMO, "longmemeval")[0]
    assert _gate({"embedder": {"model": "BAAI/bge-m3", "max_tokens": 512}}, PGMNEMO, "longmemeval")[
        0
    ]


def test_a_protocol_without_an_embedder_takes_any_that_the_system_states() -> None:
    assert _gate({}, "mnemoscope-retrieval-1") == (
        True,
        "the system states no embedder; part of mnemoscope",
    )
    passed, why = _gate({"embedder": DRAGON}, "mnemoscope-retrieval-1")
    assert (passed, "embedder dragon-plus, texts cut at 512 tokens" in why) == (True, True)


def test_a_system_that_contradicts_what_it_was_given_fails_under_every_protocol() -> None:
    system = {"embedder": DRAGON, "hello": {"identity": {"embedder": {"model": "ada-002"}}}}

    for protocol in ("", "mnemoscope-retrieval-1"):
        assert _gate(system, protocol) == (
            False,
            "it states embedder ada-002, but was given dragon-plus",
        )


def test_a_package_that_runs_in_another_version_than_pinned_fails() -> None:
    name, _, pinned = lock_file("mem0").read_text().split(" ", 1)[0].partition("==")

    assert other_versions("mem0", {name: pinned, "unlisted": "1"}) == {}
    found = other_versions("mem0", {name.upper(): "0.0.1"})

    assert found == {name.upper(): f"0.0.1 instead of {pinned}"}
    passed, why = _gate({"other_versions": found}, "mnemoscope-retrieval-1")
    assert (passed, f"0.0.1 instead of {pinned}" in why) == (False, True)


def test_the_stated_version_is_shown() -> None:
    assert "version 2.1" in _gate({"hello": {"version": "2.1"}}, "")[1]
    assert "mem0ai 1.0" in _gate({"hello": {"identity": {"versions": {"mem0ai": "1.0"}}}}, "")[1]
    assert "version 3" in _gate({"server": {"name": "x", "version": "3"}, "mapping": {}}, "")[1]
    assert "version 4" in _gate({"version": "4", "source_sha256": "abc"}, "")[1]
    assert "code sha256 abc" in _gate({"source_sha256": "abc"}, "")[1]
    for system in ({"hello": {"name": "x"}}, {"spec": "rankings from x", "format": "trec"}):
        assert "the system states no version" in _gate(system, "")[1]


@pytest.mark.parametrize("name", protocol_names())
def test_what_a_released_protocol_says_about_embedders_can_be_checked(name: str) -> None:
    protocol = load_protocol(name).protocol

    for variant in protocol.variants.values():
        for dataset in variant.benchmarks:
            required = required_embedder(protocol, dataset)
            assert (
                not required if isinstance(required, str) else required.model in protocol.embedder
            )
