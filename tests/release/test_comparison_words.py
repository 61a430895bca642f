"""Comparisons in words are caught in many phrasings; plain text of releases passes."""

from __future__ import annotations

import pytest

from mnemoscope.release.claims import lint

CAUGHT = [
    # Multipliers, in words and digits.
    "It finds twice as many memories.",
    "Twice as many questions are answered.",
    "Answers are three times as accurate.",
    "Recall is now two times better.",
    "Search returns 3x better results.",
    "The new ranker is 2× more accurate.",
    "A tenfold increase in what agents remember.",
    "A 10-fold gain.",
    "This release doubles the recall of long histories.",
    "The change tripled retrieval quality.",
    "It retrieves five times the evidence.",
    "Agents are twice as likely to remember a name.",
    "With reranking you get double the relevance.",
    # Shares and errors.
    "It makes half the errors.",
    "Hybrid search makes half as many mistakes.",
    "We halved the number of hallucinations.",
    "The gate cuts wrong answers by a third.",
    "The index reduces misses by 40 %.",
    "There are 40% fewer hallucinations.",
    "A third fewer misses on long conversations.",
    "You get 25 percent better answers.",
    "Search is half again and 20% more accurate.",
    "It has fewer errors than the last version.",
    "One quarter of the failures remain.",
    # Rivals.
    "Hybrid beats BM25.",
    "Our memory beats every vector database.",
    "It outperforms Mem0.",
    "Outperforming Zep on real chats.",
    "The engine surpasses all other memories.",
    "pgmnemo outclasses plain vector search.",
    "The new ranker outranks the old one.",
    "It is superior to keyword search.",
    "The extension offers superior recall.",
    "It leaves vector search far behind.",
    "We are well ahead of LangMem.",
    "Results are more accurate than those of v0.1.",
    "It is more reliable than before.",
    "Retrieval is better than in v0.1.0.",
    "A much smarter ranking than last year's.",
    "It is head and shoulders above the rest.",
    "Quality is on par with commercial systems.",
    "A step up from BM25.",
    # Superlatives.
    "State of the art memory for agents.",
    "State-of-the-art results on real data.",
    "A SOTA memory.",
    "Best-in-class retrieval.",
    "The best memory extension for Postgres.",
    "Our best release yet.",
    "The most accurate memory system available.",
    "World-class search.",
    "Industry-leading quality.",
    "Unmatched recall in long conversations.",
    "Its accuracy is unrivalled.",
    "The highest accuracy of any open system.",
    "It tops the leaderboard.",
    "The #1 memory for agents.",
    "Second to none.",
    "Nothing else comes close.",
    "No other system remembers as much.",
    "Cutting-edge retrieval.",
    "Near-perfect recall.",
    "It sets a new standard for agents.",
    "We rank first on LoCoMo.",
    "A market leader in recall.",
    "The leading memory system for agents.",
    "This is the top memory system.",
    "No competitor can match it.",
    "Unprecedented accuracy.",
    "Hallucinations are nearly eliminated.",
    "It has never been this good.",
    # Praise without a figure.
    "An order of magnitude more accurate.",
    "Hallucinates half as often.",
    "The error rate dropped by half.",
    "Misses are down by two thirds.",
    "Two-thirds fewer hallucinations.",
    "It wins against BM25.",
    "Vector stores lose to it.",
    "It remembers what others forget.",
    "Clearly better on long chats.",
    "It gets more questions right.",
    "Answer quality has gone up a lot.",
    "It finds more of the evidence.",
    "The agent remembers far more facts.",
    "Better retrieval for long histories.",
    "The ranker improves answer quality.",
    "The new index boosts accuracy.",
    "A dramatic improvement for long chats.",
    "A breakthrough in agent memory.",
    "More relevant results with the same index.",
    "It is twice as fast and finds twice as many memories.",
    "Although it is slower, it beats the old ranker.",
]
PASSES = [
    # Speed, cost and size are not what a release measures.
    "Indexing is twice as fast.",
    "Startup takes half the time.",
    "The index has half the size on disk.",
    "It is 3x faster at ingestion.",
    "The cache needs ten times fewer tokens.",
    "It costs a third less and uses less memory.",
    "Latency is better than in v0.1.0.",
    "The new driver beats the old one in throughput.",
    # Counts and limits.
    "The test was run twice.",
    "Each question is asked two times.",
    "Half of the questions have no category.",
    "The limit is ten times the timeout.",
    "A request that exceeds the limit is refused.",
    "If a reply surpasses the size limit, it is cut.",
    "A random ranking beats the threshold by chance.",
    "At most half the questions may fail.",
    "Duplicates were counted twice.",
    "More than one run is needed.",
    "More than 10 memories are returned.",
    "The top 10 hits are kept.",
    "The first 500 questions are those of the test split.",
    # Denials, conditions, questions, rules.
    "We do not claim the state of the art.",
    "This is not a state-of-the-art system.",
    "No metric is better than before.",
    "It does not outperform BM25.",
    "Does it beat BM25?",
    "Whether it beats BM25 cannot be told.",
    "We cannot tell whether hybrid outperforms BM25.",
    "Never report only the best-performing metric subset.",
    "A claim such as better recall needs a metric and its interval.",
    "We hope that it finds more memories.",
    "The plan is to halve the errors.",
    "Nothing was measured that would show better retrieval.",
    # Idioms and other senses.
    "It is best to set the seed.",
    "This is a best-effort feature.",
    "Best practices are in the guide.",
    "The best-known dataset is LoCoMo.",
    "At best the two are equal.",
    "The latest version is 0.3.0.",
    "The most recent memory wins ties.",
    "The most common question type is multi-session.",
    "Leading zeros are kept.",
    "The leading slash is removed.",
    "A heartbeat is written each second.",
    "The report is due ahead of time.",
    "Better error messages for broken files.",
    "Better documentation of the options.",
    "We improved the format of the report.",
    "Improved results tables in the terminal.",
    "The state of the art is surveyed in the paper's section 2?",
    "The unit tests double the run time.",
    "It returns more results with --depth 50.",
    "Two-thirds of the questions are multi-hop.",
    "The best way to start is the guide.",
    "The index is better suited to small machines.",
    "The number of questions doubled to 1,000.",
    "Records are sorted by score, highest first.",
    "The highest score possible is 1.",
    "The record of a run is kept.",
    "Superior numbers mark footnotes.",
    "A memory can be recalled more than once.",
    "The old ranker was removed.",
    "The change was made for LoCoMo; no claim on other data.",
    "LongMemEval was not run: the embedder does not fit on the machine.",
    "Sessions instead of turns.",
    "The first run used a wrong index.",
    "Rae is on leave.",
    "mail to the working group, 16 November, 9:00",
    "The dataset file was moved to another server.",
    # With its metric, interval and p a comparison is a figure.
    "Hybrid beats BM25 in recall@10 by 1.2 pp (95% CI [0.3, 2.1], p=0.01).",
]
CONTEXT = (
    "Measured under Mnemoscope retrieval protocol 1. No other metric changed significantly.\n\n"
)


def test_there_are_enough_sentences() -> None:
    assert len(set(CAUGHT)) >= 60
    assert len(set(PASSES)) >= 60


@pytest.mark.parametrize("text", CAUGHT)
def test_a_comparison_in_words_is_caught(text: str) -> None:
    assert {one.rule for one in lint(text)} & {"comparison-in-words", "unproven-improvement"}


@pytest.mark.parametrize("text", PASSES)
def test_plain_text_passes(text: str) -> None:
    assert lint(CONTEXT + text) == []
