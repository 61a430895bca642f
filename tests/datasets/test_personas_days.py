"""Daily logs: found, read, and cut into sessions and sections without losing a word."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope.datasets.day_logs import (
    Piece,
    body,
    day_files,
    digest,
    drift,
    mentions,
    pieces,
    read_day,
)

DAY = """\
Narration before anything.

# session: principal

Tuesday, 3 March 2026

### Budget
The ceiling is $240k.

### Vendor
> Ana Lima: "We sign on Friday."

# session: board-prep

### Packet
Draft two is out.
"""


def write(folder: Path, **texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name.replace('_', '-')}.md").write_text(text, encoding="utf-8")
    return folder


# Files.


def test_days_come_in_order_of_their_numbers_whatever_their_width(tmp_path: Path) -> None:
    folder = write(tmp_path, day_10000="b", day_0002="a", day_9999="c", notes="x", day_7="y")
    assert list(day_files(folder)) == [2, 9999, 10000]


def test_a_missing_or_empty_folder_of_logs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"nowhere is missing"):
        day_files(tmp_path / "nowhere")
    with pytest.raises(MissingData, match="contains no daily logs"):
        day_files(write(tmp_path, notes="x"))


@pytest.mark.parametrize(
    ("names", "problem"),
    [(("day_0000",), "day 0 is out of range"), (("day_0007", "day_00007"), "day 7 occurs twice")],
)
def test_a_day_out_of_range_or_given_twice_is_refused(
    tmp_path: Path, names: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        day_files(write(tmp_path, **dict.fromkeys(names, "text")))


def test_one_hash_covers_names_and_contents(tmp_path: Path) -> None:
    def hashed(**texts: str) -> str:
        folder = tmp_path / "-".join(texts)
        return digest(tuple(day_files(write(folder, **texts)).values()))

    first = hashed(day_0001="a", day_0002="b")
    assert first == hashed(day_0002="b", day_0001="a")
    assert first != hashed(day_0001="b", day_0003="a")
    assert first != hashed(day_0001="ab")


# Frontmatter.


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("---\ntype: daily\n---\n\nHello.\n", "Hello."),
        ("---\r\ntype: daily\r\n---\r\nHello.\r\nAgain.", "Hello.\nAgain."),
        ("\ufeff---\ntype: daily\n---\nHello.", "Hello."),
        ("---\ntags:\n  - a\n\n# note\n---\nHello.", "Hello."),
        ("Hello.\n---\nAgain.", "Hello.\n---\nAgain."),
        (
            "---\nA sentence, not a field.\n---\nHello.",
            "---\nA sentence, not a field.\n---\nHello.",
        ),
        ("---\ntype: daily\nnever closed", "---\ntype: daily\nnever closed"),
        ("", ""),
    ],
)
def test_frontmatter_is_left_out_and_nothing_else(tmp_path: Path, text: str, left: str) -> None:
    path = tmp_path / "day-0001.md"
    path.write_bytes(text.encode())
    assert read_day(path) == left


def test_a_log_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "day-0001.md"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"day-0001\.md: is not UTF-8 text"):
        read_day(path)


# Cutting.


def test_a_day_is_one_piece() -> None:
    assert pieces(DAY, "day") == [Piece("", DAY, "")]


def test_sessions_are_cut_at_their_headings() -> None:
    assert [(piece.suffix, piece.session) for piece in pieces(DAY, "session")] == [
        ("/preface", ""),
        ("/principal", "principal"),
        ("/board-prep", "board-prep"),
    ]
    assert pieces(DAY, "session")[2].text == "### Packet\nDraft two is out."


def test_sections_keep_their_titles_and_what_stands_before_them_is_number_0() -> None:
    assert pieces(DAY, "section") == [
        Piece("/preface/0", "Narration before anything.", ""),
        Piece("/principal/0", "Tuesday, 3 March 2026", "principal"),
        Piece("/principal/1", "### Budget\nThe ceiling is $240k.", "principal"),
        Piece("/principal/2", '### Vendor\n> Ana Lima: "We sign on Friday."', "principal"),
        Piece("/board-prep/1", "### Packet\nDraft two is out.", "board-prep"),
    ]


def test_a_day_without_session_headings_is_the_principals() -> None:
    assert pieces("# Monday\n\nQuiet.", "session") == [
        Piece("/principal", "# Monday\n\nQuiet.", "principal")
    ]
    assert pieces("### One\na\n### Two\nb", "section") == [
        Piece("/principal/1", "### One\na", "principal"),
        Piece("/principal/2", "### Two\nb", "principal"),
    ]


def test_a_session_that_comes_twice_keeps_its_name_and_gets_an_id_of_its_own() -> None:
    twice = pieces("# session: a\nx\n# session: a\ny\n# session: a-2\nz", "session")
    assert [piece.suffix for piece in twice] == ["/a", "/a-2", "/a-2-2"]
    assert [piece.session for piece in twice] == ["a", "a", "a-2"]


@pytest.mark.parametrize("granularity", ["session", "section"])
@pytest.mark.parametrize("text", ["", "  \n\n", "# session: principal\n\n"])
def test_an_empty_day_still_gives_one_piece(text: str, granularity: str) -> None:
    found = pieces(text, "session" if granularity == "session" else "section")
    assert found == [Piece("/principal", "", "principal")]


lines = st.sampled_from(
    [
        "# session: principal",
        "# session: board-prep",
        "# session: preface",
        "# Another heading",
        "### Topic one",
        "### Topic two",
        "#### Deeper",
        "- a bullet: 24%",
        '> Ana Lima: "So be it."',
        "---",
        "",
        "plain words here",
    ]
)


@given(st.lists(lines, max_size=30), st.sampled_from(["session", "section"]))
def test_all_text_of_a_day_is_kept_once_and_ids_are_unique(
    written: list[str], granularity: str
) -> None:
    text = "\n".join(written)
    found = pieces(text, "session" if granularity == "session" else "section")
    kept = Counter(word for piece in found for word in piece.text.split())
    headings = [line for line in written if line.startswith("# session:")]
    spoken = Counter(text.split()) - Counter(" ".join(headings).split())
    assert kept == spoken
    assert len({piece.suffix for piece in found}) == len(found) >= 1


@given(st.lists(lines, max_size=12))
def test_frontmatter_in_front_changes_no_body(written: list[str]) -> None:
    text = "\n".join(written)
    assert body(f"---\ntype: daily\n---\n{text}") == text


# Dates.

TODAY = date(2026, 3, 3)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Tuesday, 3 March 2026. Due 2026-03-02 and 2026-03-02.", 0),
        ("2026-03-02 was quiet.", -1),
        ("March 2, 2026: we met; until 2 March 2026.", -1),
        ("Notes of 2026-03-04, for 2026-03-04.", 1),
        ("On 13 March 2026 and 2026-03-031.", 0),
        ("2026-03-02, then 2026-03-04.", -1),
        ("Back on 2026-05-01.", 0),
        ("No date at all.", 0),
    ],
)
def test_a_log_drifts_where_it_names_a_neighbour_and_never_its_own_day(
    text: str, days: int
) -> None:
    assert drift(text, TODAY) == days


def test_a_date_is_counted_in_every_wording_that_has_the_year() -> None:
    text = "2026-03-03, 3 March 2026, March 3, 2026, Mar 3, 2026, 3 March, 23 March 2026"
    assert mentions(text, TODAY) == 4
    assert mentions("3 May 2026", date(2026, 5, 3)) == 1
