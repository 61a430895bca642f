"""Prohibited claims are caught in many phrasings; honest text passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mnemoscope._store.errors import DataError, EditedRun
from mnemoscope.analysis.verify import block
from mnemoscope.release.claims import lint, lint_file
from mnemoscope.release.release_facts import Facts
from mnemoscope.release.state import Release

CITE = "Measured under Mnemoscope retrieval protocol 1.\n\n"
OTHERS = "No other metric changed significantly.\n\n"


def _rules(text: str) -> set[str]:
    return {finding.rule for finding in lint(text)}


@pytest.mark.parametrize(
    "text",
    [
        "recall@10 improved by 1.2 pp (95% CI [-0.3, 2.1], p=0.12).",
        "recall@10 improved.",
        "recall@10 jumped significantly.",
        "We improved recall on long conversations.",
        "Better recall than ever!",
        "Hybrid search outperforms BM25 in MRR.",
        "It beats every other system at hit@10 (p=0.2).",
        "recall@10 rose from 0.79 [0.77, 0.81] to 0.80 [0.78, 0.82].",
        "nDCG@10 climbed to 0.81 [0.79, 0.83], p < 0.1.",
        "recall@10 gained 1.2 pp (95% CI 0.3 to 2.1; p > 0.05).",
        "The new ranking boosts recall@5/10 (p=0.4).",
        "recall@10 improved by 1.2 pp (95% CI [0.3, 2.1], p_raw=0.03).",
        "recall@10: +1.2pp (95% CI [0.3, 2.1]).",
        "Not only is recall@10 higher, it is also free.",
        "recall@10 improved, while latency did not change.",
        "recall@10 is higher and MRR is unchanged.",
        "Recall@10 went up by 3 percentage points.",
        "MRR is up by 2 points.",
        "~5 pp improvement in retrieval quality.",
        "Retrieval is 12% better than before.",
        "All metrics improved.",
        "This release delivers higher recall@10 and MRR.",
        "MRR gains are substantial (p=0.06).",
        "recall@10 improved (p_corr=0.051, 95% CI [0.0, 2.4], +1.2pp).",
        "recall@10 is 4.6 points higher than before (95% CI [2, 7]).",
        "LoCoMo recall@10: 0.7951 → 0.8409 (+4.58pp)",
        "**+4.58pp recall@10**",
        "Hybrid beats vector-only by 8 pp.",
        "recall@10 has never been higher.",
        "recall@10 doubled.",
        "State-of-the-art recall on LoCoMo!",
        "With no extra cost, recall@10 improved.",
        "As expected, recall@10 improved.",
        "No metric regressed and recall@10 is better.",
        "There is no doubt that recall@10 improved.",
        "The May release improves recall@10.",
        "If you upgrade, recall@10 improves by 5 pp [4,6].",
        "recall@10 improved; latency is neutral.",
        "Recall is up 3 pp [1, 5].",
        "Hybrid beats BM25 on LoCoMo.",
        "It finds 40% more relevant memories.",
        "Retrieval quality is up 5 points.",
        "| recall@10 | 0.80 [0.78, 0.82] | p=0.2 | better |",
        "# Recall@10 improved by 4 pp",
        "# Recall@10 improves",
        "## Improvements\n\n- recall@10: +0.4pp (95% CI [-0.3, 1.1], p=0.31)",
        "> recall@10 improved\n> by 4 pp [3, 5].",
        "| metric | base [CI] | cand [CI] | delta |\n|---|---|---|---|\n"
        "| recall@10 | 0.79 [0.77, 0.81] | 0.80 [0.78, 0.82] | +1.0 |",
        "| metric | new [95% CI] | p_corrected | verdict |\n|---|---|---|---|\n"
        "| recall@10 | 0.79 [0.77, 0.81] | 0.31 | better |",
    ],
)
def test_an_improvement_without_a_p_below_alpha_is_caught(text: str) -> None:
    assert "unproven-improvement" in _rules(CITE + OTHERS + text)


@pytest.mark.parametrize(
    "text",
    [
        "recall@10 is 0.84.",
        "recall@10 = 84.1%",
        "Recall at 10 is .84.",
        "R@10 of 0.841 on LoCoMo",
        "mrr=0.85 under the same rules",
        "`recall@10` reaches **0.8409**",
        "top-10 recall of 84 %",
        "recall@10 went from 0.7951 to 0.8409.",
        "Recall@10 0.84 (BM25: 0.90)",
        "The hit rate is now 96%.",
        "- **recall@10**: 0.841\n- **MRR**: 0.637",
        "recall@10: +1.2pp.",
        "recall@10 improved by 1.2 pp (p=0.01).",
        "recall@10 fell by 1.2 pp (p=0.01).",
        "recall@10 is 0.81 on LoCoMo and 0.93 on LongMemEval (95% CI [0.91, 0.95]).",
        "recall@10 improved by 1.2 pp (95% CI [0.3, 2.1], p=0.01) and MRR by 0.4 pp.",
        "a gain of 1.2 pp in recall@10 (95% CI [0.3, 2.1], p=0.01) and of 0.4 pp in MRR",
        "| system | recall@10 |\n|---|---|\n| hybrid | 0.84 |",
        "| system | recall@5 | recall@10 |\n|---|---|---|\n| hybrid | 0.79 [0.77, 0.81] | 0.84 |",
    ],
)
def test_a_figure_without_its_interval_is_caught(text: str) -> None:
    assert "no-interval" in _rules(CITE + OTHERS + text)


def test_a_number_without_the_protocols_name_is_caught() -> None:
    text = "recall@10 is 0.84 [0.82, 0.86]."
    assert _rules(text) == {"no-protocol"}
    assert _rules(f"{text} See mnemoscope-retrieval-1.") == set()
    assert _rules(f"{text} Measured per pgmnemo Recall\nBenchmark Protocol v1.0.0.") == set()
    assert _rules(f"{text} Measured by a sound protocol.") == {"no-protocol"}


def test_a_report_of_the_improved_metrics_alone_is_caught() -> None:
    claim = "recall@10 improved by 1.2 pp (95% CI [0.3, 2.1], p=0.01)."
    assert _rules(CITE + claim) == {"best-subset"}
    assert _rules(f"{CITE}{claim} mrr@50 improved by 1 pp (95% CI [0.1, 2], p=0.02).") == {
        "best-subset"
    }
    assert _rules(f"{CITE}{claim} MRR: +0.1pp (95% CI [-1, 1], p=0.9 ns).") == set()
    assert _rules(CITE + OTHERS + claim) == set()


@pytest.mark.parametrize(
    "text",
    [
        "recall@10 improved by 1.2 pp (95% CI [0.3, 2.1], p=0.01).",
        "recall@10 rose by 1.2 pp. The 95% CI is [0.3, 2.1] and p_corrected = 0.01.",
        "recall@10 rose from 0.79 to 0.80 (+1.2 pp, 95% CI [0.3, 2.1], p < 0.001).",
        "recall@10 rose by 1.2 pp and mrr@50 by 0.9 pp (95% CI [0.3, 2.1] and [0.1, 1.7], "
        "p=0.01 and p=0.02, respectively).",
        "recall@10: +0.40pp (95% CI [-0.30, +1.10], p=0.3100 ns)",
        "recall@10: -0.40pp (95% CI [-1.10, +0.30], p=0.3100 ns)",
        "recall@10: +0.40pp (95% CI [-0.30, +1.10], p=0.3100)",
        "recall@10 did not improve.",
        "We cannot tell whether recall@10 improved.",
        "recall@10 shows no significant improvement (+0.4 pp, 95% CI [-0.3, 1.1], p=0.31).",
        "The change in recall@10 is not significant: +0.4 pp (95% CI [-0.3, 1.1], p=0.31).",
        "The gain of 0.4 pp in recall@10 (95% CI [-0.3, 1.1]) is within noise (p=0.31).",
        "The improvement in recall@10 is not significant (p=0.3).",
        "recall@10 fell by 0.4 pp (95% CI [-1.1, 0.3], p=0.31).",
        "recall@10 is 0.84 [0.82, 0.86].",
        "recall@10 is 0.84 (95% CI 0.82–0.86).",
        "recall@10 is 0.84 ± 0.02.",
        "The recall@10 is 84.1 % (95 % CI 82.0 % to 86.0 %).",
        "recall@10 and mrr@50 stayed within noise.",
        "hit@10: gained 49, lost 36 questions (exact McNemar p = 0.19).",
        "Did recall@10 improve?",
        "A release may claim an improvement in recall@10 only if p_corrected < 0.05.",
        "Never claim improvement on a metric where p_corrected ≥ 0.05.",
        "We hope that recall@10 improves with chunking.",
        "If recall@10 improved by 2 pp, we would see it with a power of 0.8.",
        "The smallest detectable difference in recall@10 is 1.3 pp.",
        "recall@10 must not drop by more than 2 pp.",
        "mnemoscope gate --max-drop recall@10=0.02",
        "Higher is better for recall@10.",
        "The verdict on recall@10 is one of better, worse, equivalent or cannot tell.",
        "recall@10 is the fraction of the evidence in the top 10.",
        "A random order gets a recall@10 of chance 0.37.",
        "We improved the documentation and error messages.",
        "Indexing is 30% faster, recall latency is 12 ms at p95.",
        "Coverage is 100 %; 1,982 questions were measured.",
        "Version 0.3.0 (2026-11-20) adds date lines; seed 42, alpha 0.05, k=10.",
        "It is better to recall memories by date.",
        "recall@10 moved from 0.9256 [0.9059, 0.9453] to 0.9306 [0.9105, 0.9520]; the "
        "difference is +0.50 pp (95% CI [-0.25, +1.35], p = 1.0), not significant.",
        "The oracle has a recall@10 of 1.000 [0.999, 1.000], random 0.370 [0.319, 0.441].",
        "MRR regressed by 2.1 pp (95% CI [-3.0, -1.2], p < 0.001).",
        "Ten conversations cannot show an improvement in recall@10 below 1 pp.",
        "We fixed a bug in recall@10: duplicates were counted twice.",
        "Adds `hit@k`, `recall@k` and `all@k` as three metrics.",
        "p50 recall latency fell from 2.1 ms to 1.4 ms.",
        "95 % Wilson intervals are given for hit@k and all@k.",
        "Upgrading is easier and 20% smaller on disk.",
        "The cache hit rate improved from 80% to 95%.",
        "Higher precision timestamps.",
        "Increased the accuracy of the clock.",
        "Recall can now be cancelled; improved shutdown.",
        "The wheels are 5 % smaller; improved build.",
        "We do not know if recall@10 and MRR improved.",
        "We set up 3 runs and recall their memories.",
        "recall@10 improved by 0.4 pp [-0.3, 1.1]; this is not significant.",
        "## Significant Improvements\n\nNone.",
        "```\nrecall@10 improved by 5 pp\n```",
        "<!-- recall@10 improved by 5 pp -->",
        "| metric | prev [95 % CI] | new [95 % CI] | Δ [95 % CI], pp | p_corrected |\n"
        "|---|---|---|---|---|\n"
        "| recall@10 | 0.79 [0.77, 0.81] | 0.80 [0.78, 0.82] | +1.0 [-0.3, 2.1] | 0.3100 |",
        "| metric | mean | 95 % interval | n | chance |\n|---|---|---|---|---|\n"
        "| recall@10 | 0.8409 | [0.82, 0.86] | 1,982 | 0.37 |",
    ],
)
def test_honest_text_passes(text: str) -> None:
    assert lint(CITE + OTHERS + text) == []


@pytest.mark.parametrize(
    "page", ["README.md", "CHANGELOG.md", "docs/metrics.md", "docs/release.md"]
)
def test_our_own_pages_pass(page: str) -> None:
    repository = Path(__file__).resolve().parents[2]
    assert lint_file(repository / page) == []


def test_a_finding_names_its_line() -> None:
    text = f"{CITE}Two honest lines\nof a paragraph.\nrecall@10 improved."
    (line,) = {finding.line for finding in lint(text + " " + OTHERS)}
    assert line == 5


CITE_OWN = "Measured under the claude-memory stratified recall benchmark. "


def test_with_a_release_the_runs_decide_what_improved(begin: Callable[..., Release]) -> None:
    facts = Facts.of(begin("SHIP with caveat"))
    proof = "(95% CI [20, 36], p=0.001)"
    honest = f"{CITE_OWN}recall@10 improved by 28 pp {proof}. mrr@20 is neutral."
    assert lint(honest, facts) == []
    lied = f"{CITE_OWN}mrr@20 improved by 28 pp {proof}."
    (finding,) = (f for f in lint(lied, facts) if f.rule == "unproven-improvement")
    assert "mrr@20 on strata has p=" in finding.what
    blown_up = honest.replace("28 pp", "38 pp")
    assert "no run gave 38 pp" in lint(blown_up, facts)[0].what
    assert {f.rule for f in lint(honest.replace("mrr@20 is neutral.", ""), facts)} == {
        "best-subset"
    }


HEAD = "| metric | delta | 95 % CI | p | verdict |\n|---|---|---|---|---|\n"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"{HEAD}| recall@10 | +9.50pp | [+8, +11] | 0.001 | better |", "unproven-improvement"),
        (f"{HEAD}| recall@10 | +9.50pp | [+8, +11] | 0.001 | better |", "no-such-figure"),
        (f"{HEAD}| mrr@20 | +0.50pp | [+0.2, +1] | 0.001 | |", "unproven-improvement"),
        (f"{HEAD}| mrr@20 | +0.00pp | [-1, +1] | 0.001 | |", "no-such-figure"),
        ("| recall@10 | +9.50pp [+8, +11] | p=0.001 | better |", "unproven-improvement"),
        (
            "| system | recall@10 [95 % CI] |\n|---|---|\n| mine | 0.42 [0.40, 0.44] |",
            "no-such-figure",
        ),
        ("recall@10 went from 0.50 to 0.99 [0.98, 1.0].", "no-such-figure"),
        ("recall@10 0.99 [0.98, 1.0]", "no-such-figure"),
        ("mrr@20 changed by 0 pp (95% CI [-1, 1], p=0.01).", "no-such-figure"),
    ],
)
def test_with_a_release_tables_and_sentences_are_held_to_the_figures(
    text: str, rule: str, begin: Callable[..., Release]
) -> None:
    facts = Facts.of(begin("HOLD or SHIP as no-claim"))
    assert rule in {f.rule for f in lint(f"{CITE_OWN}\n\n{text}", facts)}


def test_with_a_release_its_own_figures_pass_rounded_or_not(begin: Callable[..., Release]) -> None:
    facts = Facts.of(begin("SHIP"))
    head = "| metric | prev [95 % CI] | new [95 % CI] | Δ, pp | p |\n|---|---|---|---|---|\n"
    row = "| recall@10 | 0.00 [0, 0] | 0.90 [0.85, 0.95] | +90.0 | <0.001 |"
    others = "\n\nrecall@5, ndcg@10 and mrr@20 are in the report."
    assert lint(f"{CITE_OWN}\n\n{head}{row}{others}", facts) == []
    assert lint(f"{CITE_OWN}recall@10 is 90 % [85, 95].{others}", facts) == []


def test_a_text_that_is_not_utf8_gives_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes(b"recall \xff")
    with pytest.raises(DataError, match="UTF-8"):
        lint_file(file)


def test_a_run_cited_by_two_paths_is_reported_once(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    folder = release.folder.parent
    run = release.run(release.state.pairs[0].cand)
    block(run, "wrong embedder")
    text = f"{CITE_OWN}See runs/cand/mine/metrics.json.\n\nOr {run.path.resolve()}/report.md."
    assert [f.rule for f in lint(text, folder=folder)] == ["unsound-run"]


def test_with_a_release_the_text_names_its_protocol(begin: Callable[..., Release]) -> None:
    facts = Facts.of(begin("HOLD or SHIP as no-claim"))
    text = "recall@10 is 1 [0.98, 1.0], mrr@20 0.75 [0.74, 0.76]."
    assert {f.rule for f in lint(CITE + text, facts)} == {"no-protocol"}
    assert lint(CITE_OWN + text, facts) == []


def test_the_numbers_of_a_release_with_an_edited_run_cannot_be_quoted(
    begin: Callable[..., Release],
) -> None:
    release = begin("HOLD or SHIP as no-claim")
    (release.run(release.state.pairs[0].base).path / "report.md").unlink()
    with pytest.raises(EditedRun, match=r"report\.md is missing"):
        Facts.of(release)


def test_a_citation_of_a_blocked_run_is_caught(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    folder = release.folder.parent
    run = release.run(release.state.pairs[0].cand)
    text = f"{CITE_OWN}The figures are in runs/cand/mine/metrics.json."
    assert lint(text, folder=folder) == []
    block(run, "wrong embedder")
    (finding,) = lint(text, folder=folder)
    assert finding.rule == "unsound-run"
    assert finding.what.endswith("is BLOCKED and cannot be cited")
    by_print = f"{CITE_OWN}Fingerprint {run.manifest().fingerprint[:16]}."
    assert {f.rule for f in lint(by_print, Facts.of(release))} == {"unsound-run"}


def test_a_blocked_run_may_be_named_as_such_but_not_quoted(begin: Callable[..., Release]) -> None:
    release = begin("SHIP")
    folder = release.folder.parent
    block(release.run(release.state.pairs[0].cand), "wrong embedder")
    named = f"{CITE_OWN}The run `runs/cand/mine` is BLOCKED and was left out."
    assert lint(named, folder=folder) == []
    quoted = f"{CITE_OWN}In runs/cand/mine (BLOCKED) recall@10 is 0.9 [0.8, 1.0]."
    assert {f.rule for f in lint(quoted, folder=folder)} == {"unsound-run"}


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "page", ["README.md", "CHANGELOG.md", *(f"docs/{file.name}" for file in ROOT.glob("docs/*.md"))]
)
def test_our_own_pages_pass_our_own_linter(page: str) -> None:
    assert lint_file(ROOT / page) == []
