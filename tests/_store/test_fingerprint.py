"""One hash over everything that decides a number, and words for what differs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope._store.fingerprint import differences, fingerprint, sha256_file

leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text(max_size=2)
identities = st.dictionaries(
    st.sampled_from("abc"),
    leaves | st.lists(leaves, max_size=2) | st.dictionaries(st.sampled_from("xy"), leaves),
)


@given(identities)
def test_the_order_of_keys_does_not_matter(identity: dict[str, Any]) -> None:
    turned = {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value
        for key, value in reversed(identity.items())
    }

    assert fingerprint(turned) == fingerprint(identity)
    assert differences(turned, identity) == []


@given(identities, identities)
def test_fingerprints_differ_exactly_where_a_difference_can_be_named(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert (fingerprint(one) != fingerprint(other)) == bool(differences(one, other))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ({"depth": 50}, {"depth": 10}, ["depth: 50 → 10"]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ["a.b.c: 1 → 2"]),
        ({"a": "x"}, {"a": {"b": 1}}, ["a: 'x' → {'b': 1}"]),
        ({"a": None}, {}, ["a: None → nothing"]),
        ({}, {"a": 1}, ["a: nothing → 1"]),
        ({"a": 1}, {"a": 1.0}, ["a: 1 → 1.0"]),
        ({"a": 1}, {"a": True}, ["a: 1 → True"]),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, ["a: 1 → 2", "b: 1 → 2"]),
    ],
)
def test_differences_are_named_by_path(
    old: dict[str, Any], new: dict[str, Any], named: list[str]
) -> None:
    assert differences(old, new) == named


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    content = b"memory\n" * 100_000
    (tmp_path / "file").write_bytes(content)

    assert sha256_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()
