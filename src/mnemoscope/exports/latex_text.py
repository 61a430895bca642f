"""Text from anywhere as LaTeX that only prints it: pure ASCII, for every engine and font encoding.

Accents become LaTeX's accent commands. A character that the standard fonts do not have is printed
as its number, such as U+1F600, since pdflatex would stop at it.
"""

from __future__ import annotations

import unicodedata

from mnemoscope.text.display import one_line

_ASCII = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\texttt{\char34}",
    # In braces, so that two of them, or one after ? and !, do not form a ligature.
    "'": "{'}",
    "`": "{`}",
    "-": "{-}",
    ",": "{,}",
    # At the start of a cell or after \\ a star or a bracket would be an option of \\.
    "*": "{*}",
    "[": "{[}",
    "]": "{]}",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}
_LETTERS = {
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "–": "--",
    "—": "---",
    "−": r"\ensuremath{-}",
    "‘": "`{}",
    "’": "'{}",
    "“": "``{}",
    "”": "''{}",
    "…": r"\ldots{}",
    "§": r"\S{}",
    "©": r"\copyright{}",
    "·": r"\ensuremath{\cdot}",
    "×": r"\ensuremath{\times}",
    "±": r"\ensuremath{\pm}",
    "°": r"\ensuremath{{}^\circ}",
    "→": r"\ensuremath{\rightarrow}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "µ": r"\ensuremath{\mu}",
    "\N{NO-BREAK SPACE}": "~",
}
_GREEK = {
    letter: rf"\ensuremath{{\{name}}}"
    for letter, name in zip(
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
        "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega".split(),
        strict=True,
    )
}


def as_latex(text: str, most: int | None = None) -> str:
    """A text in one line as LaTeX; `most` is the most characters that are shown."""
    shown = one_line(text).strip()
    if most is not None and len(shown) > most:
        shown = f"{shown[: most - 1]}…"
    return "".join(map(_character, unicodedata.normalize("NFC", shown)))


def as_comment(text: str) -> str:
    """A line of a comment: ASCII, without a line break."""
    return f"% {one_line(text).encode('ascii', 'backslashreplace').decode()}".rstrip()


def _character(one: str) -> str:
    if one.isascii():
        return _ASCII.get(one, one)
    if known := _LETTERS.get(one) or _GREEK.get(one):
        return known
    parts = unicodedata.normalize("NFD", one)
    base, mark = parts[0], parts[1:]
    if mark in _ACCENTS and base.isascii() and base.isalpha():
        dotless = {"i": r"\i", "j": r"\j"}.get(base, base)
        return rf"\{_ACCENTS[mark]}{{{dotless}}}"
    return rf"\texttt{{U+{ord(one):04X}}}"
