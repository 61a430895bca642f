"""A spec prints back as it was read, and names a folder that every file system takes."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope._store.errors import UsageError
from mnemoscope._store.spec import Spec, parse_scalar
from mnemoscope.types import Scalar

names = st.from_regex(r"[A-Za-z][\w.:-]{0,15}", fullmatch=True)
keys = st.from_regex(r"[A-Za-z_]\w{0,9}", fullmatch=True)
words = st.text(st.characters(exclude_characters=",", exclude_categories=["Cs"]), max_size=10)
scalars: st.SearchStrategy[Scalar] = (
    st.integers()
    | st.floats(allow_nan=False)
    | st.booleans()
    | words.map(str.strip).filter(lambda word: isinstance(parse_scalar(word), str))
)


@given(names, st.dictionaries(keys, scalars, max_size=4))
def test_a_printed_spec_reads_back_as_itself(name: str, args: dict[str, Scalar]) -> None:
    again = Spec.parse(str(Spec(name, args)))

    read = [parse_scalar(str(value)) for value in again.args.values()]
    assert (again.name, [*again.args], read) == (name, [*args], [*args.values()])
    assert [type(value) for value in read] == [type(value) for value in args.values()]


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        spec = Spec.parse(text)
    except UsageError:
        return
    assert str(Spec.parse(str(spec))) == str(spec)


def test_arguments_stay_strings() -> None:
    spec = Spec.parse(" hybrid , fusion = rrf, weight=0.50,rrf-k=60,cache=False,model=, path=a=b ")

    assert spec.name == "hybrid"
    assert spec.args == {
        "fusion": "rrf",
        "weight": "0.50",
        "rrf_k": "60",
        "cache": "False",
        "model": "",
        "path": "a=b",
    }
    assert str(spec) == "hybrid,fusion=rrf,weight=0.50,rrf_k=60,cache=False,model=,path=a=b"


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-7", -7), ("7.0", 7.0), ("1e3", 1000.0), ("TRUE", True), ("truth", "truth")],
)
def test_scalars(text: str, value: Scalar) -> None:
    assert parse_scalar(text) == value
    assert type(parse_scalar(text)) is type(value)


def test_a_number_too_long_for_int_does_not_break_the_reading() -> None:
    assert parse_scalar("9" * 5000) == math.inf


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty name"),
        (" ,k1=1", "empty name"),
        ("bm25,k1", "cannot read 'k1'"),
        ("bm25,=1", "cannot read '=1'"),
        ("bm25,1k=1", "cannot read '1k=1'"),
        ("bm25,,", "cannot read ''"),
        ("bm25,k1=1,k1=2", "'k1' is given twice"),
        ("bm25,a-b=1,a_b=2", "'a_b' is given twice"),
    ],
)
def test_an_unreadable_spec_is_explained(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        Spec.parse(text)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("bm25", "bm25"),
        ("hybrid,weight=0.5", "hybrid,weight=0.5"),
        ("my_pkg.mod:Class", "my_pkg.mod-Class"),
        ("x,path=/data/a b", "x,path=-data-a-b"),
        ("../x", "x"),
    ],
)
def test_slugs(text: str, slug: str) -> None:
    assert Spec.parse(text).slug == slug


@given(names, st.dictionaries(keys, scalars, max_size=4))
def test_a_slug_is_a_plain_folder_name(name: str, args: dict[str, Scalar]) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_,=+][A-Za-z0-9_.,=+-]*", Spec(name, args).slug)


@pytest.mark.parametrize(
    ("text", "label", "spec"),
    [
        ("mine=bm25,k1=2", "mine", "bm25,k1=2"),
        ("v1.2-rc=stdio:python3 a.py --top=5", "v1.2-rc", "stdio:python3 a.py --top=5"),
        ("bm25,k1=2", "", "bm25,k1=2"),
        ("stdio:python3 a.py --top=5", "", "stdio:python3 a.py --top=5"),
        ("http:http://host/?key=1", "", "http:http://host/?key=1"),
    ],
)
def test_a_label_only_names_the_folder(text: str, label: str, spec: str) -> None:
    read = Spec.labelled(text)
    assert (read.label, str(read)) == (label, spec)
    assert read.slug == (label or Spec.parse(spec).slug)


@pytest.mark.parametrize(
    "label",
    [
        *("../../evil", "<script>", "", "a b", "\u202ea", "x_{y}", "summary.json"),
        *("attempts.jsonl", "a" * 181, "a" + "\u00e9" * 90),
    ],
)
def test_a_label_that_cannot_name_a_folder_is_refused_as_a_label(label: str) -> None:
    with pytest.raises(UsageError, match="as a label"):
        Spec.labelled(f"{label}=bm25,k1=2")
