"""Names of people who sign: which are refused, which mean one person, and which only look alike."""

from __future__ import annotations

import re
import unicodedata

from mnemoscope._store.errors import UsageError

# Letters that are drawn like Latin ones, by the Latin letter. Python has no table of them.
_DRAWN_LIKE = {
    "a": "аɑαɐ",
    "b": "ьвβƅ",
    "c": "сϲᴄ",
    "d": "ԁɗ",
    "e": "еєҽεɛ",
    "f": "ƒϝ",
    "g": "ɡց",
    "h": "һհнɦ",
    "j": "јϳյ",
    "k": "кκĸ",
    "l": "iı1|!іӏιɩℓǀ",
    "m": "мʍ",
    "n": "пոηŋ",
    "o": "0оοσօסø",
    "p": "рρ",
    "q": "ԛզ",
    "r": "гᴦɾ",
    "s": "ѕꜱ5$",
    "t": "тτ",
    "u": "υսʋц",
    "v": "ѵν",
    "w": "ԝωшա",
    "x": "хχ",
    "y": "уγүʏ",
    "z": "ᴢʐ2",
}
_LATIN = {ord(other): latin for latin, others in _DRAWN_LIKE.items() for other in others}
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_AT_THE_END = ".,;:!?- "
_BREAKS_A_TABLE = "|<>`\n\r\t"


def check_name(name: str, option: str = "--name") -> str:
    """The name with single spaces; one that cannot be read as it is stored is refused."""
    composed = unicodedata.normalize("NFC", name)
    kinds = {unicodedata.category(one) for one in composed if one != " "}
    if not any(kind.startswith("L") for kind in kinds) or any(
        one in _BREAKS_A_TABLE for one in name
    ):
        raise UsageError(f"{option} {name!r} is not a valid name: one line without | and <")
    if kinds & {"Cf", "Cc", "Co", "Cs", "Cn", "Zl", "Zp", "Mn", "Me", "Zs"}:
        raise UsageError(
            f"{option} {name!r} is not a valid name: it has characters that cannot be seen or that "
            "change the letter before them"
        )
    if len(scripts := _scripts(composed)) > 1:
        raise UsageError(
            f"{option} {name!r} is not a valid name: its letters are of several scripts "
            f"({', '.join(sorted(scripts))}), so it could be read as another name"
        )
    return " ".join(composed.split())


def same_name(one: str, other: str) -> bool:
    """Whether two names differ at most in case, spaces and punctuation at the end."""
    first, second = (" ".join(n.casefold().split()).rstrip(_AT_THE_END) for n in (one, other))
    return first == second


def look_alike(one: str, other: str) -> bool:
    """Whether a reader could take two names for one person's.

    Case, spaces, punctuation, accents, invisible characters, the order of the words and letters
    that are drawn alike do not tell people apart, and neither does an initial.
    """
    first, second = _words(one), _words(other)
    if "".join(first) == "".join(second) or sorted(first) == sorted(second):
        return True
    if min(len(first), len(second)) < 2 or first[-1] != second[-1]:
        return False
    # The same surname, and the same first name or its initial; names between them do not count.
    a, b = first[0], second[0]
    return a == b or (min(len(a), len(b)) == 1 and a[0] == b[0])


def _words(name: str) -> list[str]:
    """The words of a name, each as the letters that it is drawn like."""
    return [drawn for word in re.split(r"[\s.,;:_/'’-]+", name) if (drawn := _drawn(word))]


def _drawn(word: str) -> str:
    # Twice: a decomposed letter can be one that is drawn like another.
    for _ in range(2):
        word = unicodedata.normalize("NFKD", word).casefold().translate(_LATIN)
    word = "".join(one for one in word if unicodedata.category(one)[0] in "LN")
    for pair, single in _PAIRS:
        word = word.replace(pair, single)
    return word


def _scripts(name: str) -> set[str]:
    """The first words of the letters' Unicode names: LATIN, CYRILLIC, GREEK, HIRAGANA."""
    found = {
        unicodedata.name(one, "UNKNOWN").split()[0]
        for one in name
        if unicodedata.category(one).startswith("L")
    }
    # Japanese is written in three scripts at once.
    return {"CJK"} if found <= {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"} else found
