"""How often the interval of a corrected accuracy covers the truth, in simulation.

    python benchmarks/corrected_accuracy.py --repeats 16000

Conversations differ in difficulty, questions of one conversation are answered alike, and the
judge's errors are known only from an exam. The truth is the accuracy over all conversations.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from mnemoscope.stats.corrected import JudgeErrors, prediction_powered, rogan_gladen

ACCURACIES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
PROFILES = {
    "careful": (0.01, 0.02),
    "even": (0.05, 0.05),
    "lenient": (0.09, 0.02),
    "strict": (0.02, 0.09),
    "poor": (0.20, 0.15),
}
"""The name of a judge, its rate of false accepts and its rate of false rejects."""
CONVERSATIONS, QUESTIONS, EXAM = 10, 154, 600
SPREAD = 40.0
"""The accuracy of a conversation has a beta distribution with this concentration."""


def coverage(
    accuracy: float, profile: tuple[float, float], repeats: int, seed: int
) -> tuple[float, float, float]:
    """The shares of intervals that cover the truth, corrected and raw, and the mean width."""
    rng = np.random.default_rng(seed)
    fa, fr = profile
    clusters = np.repeat([f"c{i}" for i in range(CONVERSATIONS)], QUESTIONS).tolist()
    covered = raw = 0
    width = 0.0
    for _ in range(repeats):
        own = rng.beta(accuracy * SPREAD, (1 - accuracy) * SPREAD, CONVERSATIONS)
        right = rng.random((CONVERSATIONS, QUESTIONS)) < own[:, None]
        accepted = np.where(
            right, rng.random(right.shape) >= fr, rng.random(right.shape) < fa
        ).ravel()
        errors = JudgeErrors(
            rng.binomial(EXAM, fa) / EXAM, EXAM, rng.binomial(EXAM, fr) / EXAM, EXAM
        )
        found = rogan_gladen(accepted.astype(float), clusters, errors)
        assert found is not None
        covered += found.low <= accuracy <= found.high
        width += found.high - found.low
        plain = rogan_gladen(accepted.astype(float), clusters, JudgeErrors(0, 1e9, 0, 1e9))
        assert plain is not None
        raw += plain.low <= accuracy <= plain.high
    return covered / repeats, raw / repeats, width / repeats


def labelled_coverage(
    accuracy: float, profile: tuple[float, float], labels: int, repeats: int, seed: int
) -> float:
    """The share of prediction-powered intervals that cover the truth."""
    rng = np.random.default_rng(seed)
    fa, fr = profile
    n = CONVERSATIONS * QUESTIONS
    clusters = np.repeat([f"c{i}" for i in range(CONVERSATIONS)], QUESTIONS).tolist()
    covered = 0
    for _ in range(repeats):
        own = rng.beta(accuracy * SPREAD, (1 - accuracy) * SPREAD, CONVERSATIONS)
        right = (rng.random((CONVERSATIONS, QUESTIONS)) < own[:, None]).ravel()
        accepted = np.where(right, rng.random(n) >= fr, rng.random(n) < fa)
        chosen = np.zeros(n, dtype=bool)
        chosen[rng.choice(n, labels, replace=False)] = True
        known = [float(r) if c else None for r, c in zip(right, chosen, strict=True)]
        found = prediction_powered(accepted.astype(float), known, clusters)
        assert found is not None
        covered += found.low <= accuracy <= found.high
    return covered / repeats


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args(arguments)
    print(
        f"{CONVERSATIONS} conversations of {QUESTIONS} questions, exam of 2 x {EXAM} answers, ",
        end="",
    )
    print(f"{chosen.repeats:,} repeats\n")
    print(
        "| judge (false accepts, rejects) | accuracy | covered | width | raw covered | 100 labels |"
    )
    print("|---|---|---|---|---|---|")
    found = []
    for name, profile in PROFILES.items():
        for accuracy in ACCURACIES:
            own, raw, width = coverage(accuracy, profile, chosen.repeats, chosen.seed)
            labelled = labelled_coverage(accuracy, profile, 100, chosen.repeats, chosen.seed)
            found.append(own)
            print(
                f"| {name} ({profile[0]:.0%}, {profile[1]:.0%}) | {accuracy:.2f} | {own:.3f} | "
                f"{width:.3f} | {raw:.3f} | {labelled:.3f} |",
                flush=True,
            )
    print(f"\ncovered: {min(found):.3f} to {max(found):.3f}, mean {sum(found) / len(found):.3f}")


if __name__ == "__main__":
    main()
