"""The chance that passages do not hold the answer to a question, from how well sentences fit.

The strongest sign is the speaker: what one person says about themselves is no answer to a question
about another person.
"""

from __future__ import annotations

import math

import numpy as np

from mnemoscope.readers.question_kinds import Asked
from mnemoscope.readers.sentence_fit import SENTENCE_FEATURES, Floats

ABSENCE_FEATURES = (
    "one",
    "best",  # how well the best sentence fits, whoever says it
    "gap",  # how much better the people of the question fit than others
    "best-own",  # the best sentence is said by a person of the question
    "best-other",  # the best sentence is said by another
    "stranger",  # who the question is about neither speaks nor is named in the best sentence
    "covered",
    "passage",
    "meaning",
    "own-covered",
    "people",  # a person of the question speaks
    "yes",
    "two",  # the question names several people or things
)
_AT = {name: place for place, name in enumerate(SENTENCE_FEATURES)}
_FIT = {"covered": 2.0, "passage": 1.0, "meaning": 1.0, "asks": -0.5, "day": 0.5, "off": -0.3}
_FITS = np.array([_FIT.get(name, 0) for name in SENTENCE_FEATURES], np.float32)


def absence_features(asked: Asked, table: Floats, speakers: bool) -> Floats:
    """The values of ABSENCE_FEATURES.

    `table` has SENTENCE_FEATURES; `speakers` says whether any line names its speaker.
    """
    fits = table @ _FITS
    own, other = table[:, _AT["speaker"]] > 0, table[:, _AT["other"]] > 0
    people = bool(own.any() or other.any())
    best = int(fits.argmax())
    gap = (fits[own].max() if own.any() else 0) - (fits[other].max() if other.any() else 0)
    covered = table[:, _AT["covered"]]
    named = table[best, _AT["named"]] > 0
    return np.array(
        [
            1,
            fits[best],
            gap,
            own[best],
            other[best],
            bool(asked.subjects) and not asked.mine and speakers and not people and not named,
            covered.max(),
            table[:, _AT["passage"]].max(),
            table[:, _AT["meaning"]].max(),
            covered[own].max() if own.any() else covered.max(),
            people,
            asked.kind == "yes",
            len(asked.names) > 1,
        ],
        np.float32,
    )


def chance_absent(values: Floats, weights: Floats) -> float:
    """The chance that the passages do not hold the answer."""
    score = max(min(round(float(values @ weights), 5), 50.0), -50.0)
    return 1 / (1 + math.exp(-score))
