"""Parsing of replies: thoughts are removed, JSON is read and repaired."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.models.replies import parse_json, without_thoughts

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
PLAIN = st.text(st.characters(blacklist_characters='{}[]"`\\'), max_size=30)


@given(OBJECTS, st.booleans(), st.sampled_from([None, 2]))
def test_any_object_comes_back_as_it_was(
    value: dict[str, object], ascii: bool, indent: int | None
) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=ascii, indent=indent)) == value


@given(OBJECTS, PLAIN, PLAIN)
def test_text_around_the_object_is_ignored(
    value: dict[str, object], before: str, after: str
) -> None:
    assert parse_json(f"{before}{json.dumps(value)}{after}") == value


@given(OBJECTS, st.sampled_from(["```json\n", "```\n", "```JSON \n"]))
def test_a_code_fence_around_the_object_is_ignored(value: dict[str, object], fence: str) -> None:
    assert parse_json(f"{fence}{json.dumps(value, indent=1)}\n```") == value


@given(OBJECTS.filter(bool))
def test_trailing_commas_are_removed(value: dict[str, object]) -> None:
    assert parse_json(json.dumps(value)[:-1] + " ,\n}") == value


def test_commas_and_braces_inside_strings_are_left_alone() -> None:
    reply = 'Sure! {"a": "x,} {", "b": ["}",], } Hope that helps {"a": 2}'
    assert parse_json(reply) == {"a": "x,} {", "b": ["}"]}


def test_line_breaks_inside_strings_are_accepted() -> None:
    assert parse_json('{"why": "one\ntwo"}') == {"why": "one\ntwo"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("CORRECT", "no {…}"),
        ("[1, 2]", "no object"),
        ('{"a": 1', "never closes"),
        ('{"a": "never ends}', "never closes"),
        ('{"a": nothing}', "no JSON"),
        ('{"a": NaN}', "no JSON"),
        ("{'a': 1}", "no JSON"),
        ("```json\n```", "no {…}"),
    ],
)
def test_the_error_gives_the_reason(reply: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(reply)


@given(st.text(st.sampled_from('{}[]",:\\ a1`\n'), max_size=40))
def test_no_text_raises_anything_but_value_error(text: str) -> None:
    try:
        found = parse_json(text)
    except ValueError as error:
        assert str(error)
    else:
        assert isinstance(found, dict)


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    with pytest.raises(ValueError, match="deep"):
        parse_json('{"a":' * 100_000 + "1" + "}" * 100_000)


@pytest.mark.parametrize(
    ("reply", "rest"),
    [
        ("<think>hm</think>yes", "yes"),
        (" \n<think>a\nb</think>\nyes", "\nyes"),
        ("<think>a</think><think>b</think>", "<think>b</think>"),
        ("yes <think>hm</think>", "yes <think>hm</think>"),
        ("<think>it never ends", "<think>it never ends"),
        ("yes", "yes"),
    ],
)
def test_thoughts_before_the_reply_are_removed(reply: str, rest: str) -> None:
    assert without_thoughts(reply) == rest
