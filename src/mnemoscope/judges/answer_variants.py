"""The kinds of right and wrong answers that an exam draws, and the lengths they come in.

Each rule takes a reference with its question and what else the benchmark says, and returns an
answer, or None where the rule does not apply. Texts are English, as those of the datasets are.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from mnemoscope.judges import right_variants as right
from mnemoscope.judges import wrong_variants as wrong
from mnemoscope.judges.variant_source import Rule, Source, name_in, topic_of
from mnemoscope.text.reference_types import Length


class Kind(NamedTuple):
    """A kind of answer: its rule, and its weight beside others that share as many words.

    How often answers share so many words with the reference is in `answer_profile`.
    """

    rule: Rule
    acceptable: bool
    weight: float = 1.0
    """0 for kinds that no honest reader gives: they count by themselves only."""
    expects: str = "answer"


KINDS: dict[str, Kind] = {
    "right-same-words": Kind(right.same_words, True),
    "right-date-format": Kind(right.other_date_format, True),
    "right-date-resolved": Kind(right.resolved_date, True, 3.0),
    "right-number-format": Kind(right.other_number_format, True),
    "right-list-order": Kind(right.other_order, True),
    "right-paraphrase": Kind(right.paraphrase, True),
    "right-reworded": Kind(right.reworded, True),
    "right-fewer-words": Kind(right.fewer_words, True),
    "right-more-words": Kind(right.more_words, True),
    "right-quoted": Kind(right.quoted, True),
    "right-short": Kind(right.short_form, True),
    "right-yes-no": Kind(right.yes_or_no, True),
    "correct-refusal": Kind(wrong.refusal, True, expects="abstain"),
    "other-date": Kind(wrong.other_date, False, 6.0),
    "other-number": Kind(wrong.other_number, False, 6.0),
    "other-entity": Kind(wrong.other_entity, False, 6.0),
    "other-detail": Kind(wrong.other_detail, False, 6.0),
    "other-words": Kind(wrong.other_words, False, 3.0),
    "negated": Kind(wrong.negated, False, 0.0),
    "vaguer": Kind(wrong.vaguer, False, 2.0),
    "part-of-list": Kind(wrong.part_of_list, False, 2.0),
    "superset": Kind(wrong.superset, False),
    "refusal": Kind(wrong.refusal, False),
    "injection": Kind(wrong.injection, False, 0.0),
    "right-topic": Kind(wrong.right_topic, False, 2.0),
    "confabulated": Kind(wrong.confabulated, False, expects="abstain"),
}
"""Right ones first."""
SHORT_ONLY = frozenset({"refusal", "correct-refusal", "injection"})


def at_length(
    answer: str, source: Source, length: Length, *, acceptable: bool, rng: Random
) -> str | None:
    """The answer as it is, in a sentence, or in a reply that says more than was asked.

    What a long reply adds to a wrong answer does not make it right.
    """
    if length == "plain":
        return answer
    text = answer.strip().rstrip(".")
    name, topic = name_in(source.question), topic_of(source.question) or "this"
    if length == "sentence":
        # No commas: to some judges they separate the things of a list.
        forms = (
            f"About {topic}: {name} said {text}.",
            f"{name} said {text} when asked about {topic}.",
            f"As for {topic} I think it was {text}.",
        )
        return rng.choice(forms)
    context = list(source.said if acceptable else source.beside)
    if not context:
        return None
    rng.shuffle(context)
    start = rng.choice(
        (
            f"Based on what {name} said about {topic} the answer is {text}.",
            f"{name} talked about {topic}: {text}.",
            f"When it comes to {topic} {name} mentioned {text}.",
        )
    )
    added = [word for sentence in context[:3] for word in sentence.split()]
    return " ".join([start, *added[: rng.choice((6, 12, 20, 30, 40))]])
