"""YAML that would end the process or run for hours is refused with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnemoscope._store.errors import DataError
from mnemoscope._store.yaml import load_yaml, parse_yaml

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "is nested more than 100 deep"),
        ("{a: " * 5_000, "is nested more than 100 deep"),
        ("- " * 100_000, "is nested more than 100 deep"),
        ("? " * 5_000, "is nested more than 100 deep"),
        ("\n".join(" " * n + "-" for n in range(3_000)), "is nested more than 100 deep"),
        ('["]",' * 5_000, "is nested more than 100 deep"),
        (LAUGHS, "has more than 1,000,000 values"),
        ("a: &x [*x]", "*x contains itself or is unknown"),
        ("a: *nobody", "*nobody contains itself or is unknown"),
        ("n: " + "9" * 5_000, "a value cannot be read"),
        ("!!int x", "a value cannot be read"),
        ("!!timestamp x", "a value cannot be read"),
        ("!!python/object/apply:os.system [x]", "could not determine a constructor"),
        ('a: "\\ud800"', "line 1"),
        ("a: \x00", "control characters"),
    ],
)
def test_a_hostile_document_is_refused(text: str, why: str) -> None:
    with pytest.raises(DataError) as refused:
        parse_yaml(text, Path("evil.yaml"))

    assert str(refused.value).startswith("evil.yaml")
    assert why in str(refused.value)


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")

    with pytest.raises(DataError, match=r"latin.yaml: is not UTF-8 text"):
        load_yaml(tmp_path / "latin.yaml")


def test_ordinary_documents_with_anchors_and_brackets_are_read() -> None:
    text = "base: &b {x: [1, 2]}\nall: [*b, *b]\nmany: [" + "[1], " * 300 + "]\nu: '\\u00e4'\n"

    found = parse_yaml(text, Path("good.yaml"))

    assert found["all"] == [{"x": [1, 2]}] * 2
    assert len(found["many"]) == 300


def test_a_long_file_may_have_as_many_values_as_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mnemoscope._store.yaml._MOST_VALUES", 1_000)
    rows = "[" + "[1], " * 1_500 + "]"

    assert len(parse_yaml(rows, Path("long.yaml"))) == 1_500
    with pytest.raises(DataError, match=r"bomb.yaml, line 5: has more than 7,841 values"):
        parse_yaml(f"long: {rows}\n{LAUGHS}", Path("bomb.yaml"))
