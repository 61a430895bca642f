"""How a passage is cut into what can be cited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.readers.citable_sentences import cut

DAY = """---
type: daily
---
# session: principal
Tuesday, 3 March 2026

### Heron
The limit is $240k. Dr. Moreno said "Fine." Nobody
objected.

> Ana Ruiz: "We should wait.
> Until the audit is over."
> Tom Okoro: "I disagree. Strongly."

- [x] Order the parts
- Call Tom. Ask for the price
1. First things first

# session: board
### Empty
### Kite
Kite waits.
---
"""


def test_sentences_bullets_and_quotes_are_cited_one_by_one() -> None:
    assert [cited.text for cited in cut(DAY)] == [
        "The limit is $240k.",
        'Dr. Moreno said "Fine."',
        "Nobody objected.",
        'Ana Ruiz: "We should wait. Until the audit is over."',
        'Tom Okoro: "I disagree. Strongly."',
        "Order the parts",
        "Call Tom.",
        "Ask for the price",
        "First things first",
        "Empty",
        "Kite waits.",
    ]


def test_a_sentence_knows_its_heading_and_session() -> None:
    by_text = {cited.text: cited for cited in cut(DAY)}

    assert by_text["Order the parts"][1:3] == ("Heron", "principal")
    assert by_text["Kite waits."][1:3] == ("Kite", "board")
    assert by_text["Order the parts"].section == by_text["The limit is $240k."].section
    assert by_text["Kite waits."].section != by_text["Empty"].section


def test_plain_text_needs_no_markdown() -> None:
    assert [cited.text for cited in cut("One came. Two went!  Three stayed?")] == [
        "One came.",
        "Two went!",
        "Three stayed?",
    ]


@pytest.mark.parametrize(
    "line", ["Tuesday, 3 March 2026", "2026-03-03", "March 3, 2026.", "3rd March 2026"]
)
def test_the_date_of_a_page_is_not_cited(line: str) -> None:
    assert [cited.text for cited in cut(f"{line}\n\nIt rained.")] == ["It rained."]


def test_an_empty_text_gives_no_sentences() -> None:
    assert cut("") == cut(" \n\n---\n") == []


_WORDS = st.lists(
    st.from_regex(r"[A-Za-z][a-z0-9]{0,6}[.!?]?", fullmatch=True), min_size=1, max_size=8
)


@given(st.lists(st.tuples(st.sampled_from(["", "- ", "> ", "2. "]), _WORDS), max_size=8))
def test_no_word_under_a_heading_is_lost(lines: list[tuple[str, list[str]]]) -> None:
    text = "### Heading\n" + "\n".join(mark + " ".join(words) for mark, words in lines)
    expected = [word for _, words in lines for word in words]

    found = [word for cited in cut(text) for word in cited.text.split()]

    assert found == (expected or ["Heading"])
