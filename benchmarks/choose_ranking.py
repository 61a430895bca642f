"""Choose what multigrain ranks by, besides its grains, on BEAM, data that no report is made on.

Usage: python benchmarks/choose_ranking.py BEAM_100K.tar.xz BEAM_500K.tar.xz
From the system that choose_grains.py chose, one change is taken at a time: of those that are better
by two standard errors over chats while no view loses, the one with the best mean; until none is
left. Then the chats of 500K, which take no part, are scored. Prints the log that
docs/decisions/0044 quotes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from choose_grains import (
    HYBRID,
    VIEWS,
    Measured,
    Mix,
    View,
    difference,
    given_views,
    head,
    line,
    measure,
)
from mnemoscope.models.embedders import embed_query, load_embedder
from mnemoscope.systems.builtin.bm25_index import Bm25Index
from mnemoscope.systems.builtin.multigrain import (
    MemoryFacts,
    Multigrain,
    mean_of_best,
)
from mnemoscope.systems.builtin.scored import FloatArray
from mnemoscope.text.english import stem_words
from mnemoscope.text.tokenize import chunks, words
from mnemoscope.types import Memory, Query, Question

Data = dict[str, list[View]]
Asked = list[tuple[Question, set[str]]]
GRAINS = {"the whole": 0, "a chunk": 100, "a passage": 40, "a sentence": 16}
WINDOW = 8
"""Two words of a query may stand so many words apart in a memory."""
PARAMETERS = ((0.9, 0.4), (1.2, 0.5), (1.5, 1.0), (3.0, 0.75))
"""k1 and b of BM25, beside 1.5 and 0.75."""
WORDS = ("words of a chunk", "words of a passage", "words of the whole")
VECTORS = ("vectors of chunks", "vectors of passages", "vectors of the whole")
FUSIONS = ("z-scores", "reciprocal ranks")
WORKERS = 4
START = Mix((*VECTORS, *WORDS), following=0.1, preceding=0.1, dates=0.5)


class Change(NamedTuple):
    """Legs that come in place of others (an empty name: in place of none)."""

    label: str
    replaced: Mapping[str, str]

    def of(self, mix: Mix) -> Mix | None:
        """The changed mix, or None if a leg is not there to be replaced, or is there already."""
        if any(old and old not in mix.legs for old in self.replaced):
            return None
        legs = [self.replaced.get(leg, leg) for leg in mix.legs]
        if added := self.replaced.get(""):
            legs.append(added)
        return mix._replace(legs=tuple(legs)) if len(set(legs)) == len(legs) else None


def scaled(scores: FloatArray, how: str = "min-max") -> FloatArray:
    """The scores of a leg on a scale that all legs have; equal scores become zeros."""
    low, high = scores.min(), scores.max()
    if high - low <= 1e-5 * max(1, abs(high)):
        return np.zeros_like(scores)
    if how == "z-scores":
        found = (scores - scores.mean()) / scores.std()
    elif how == "reciprocal ranks":
        order = np.argsort(-scores, kind="stable")
        found = np.empty_like(scores)
        found[order] = 1 / (60 + np.arange(1, len(scores) + 1))
    else:
        found = (scores - low) / (high - low)
    return np.asarray(found, np.float32)


@cache
def word_vector(word: str) -> FloatArray:
    vector: FloatArray = load_embedder("wordllama").embed([word])[0]
    return vector


def vectors_of(given: Sequence[str]) -> FloatArray:
    return np.array([word_vector(word) for word in given], np.float32)


def near_pairs(stems: Sequence[str]) -> list[str]:
    """Two different words of one window, in any order."""
    spans = (stems[start : start + WINDOW] for start in range(len(stems)))
    near = ((span[0], other) for span in spans for other in span[1:] if other != span[0])
    return [" ".join(sorted(two)) for two in near]


class Grain:
    """The pieces of all memories of a view at one size."""

    def __init__(self, texts: Sequence[str], size: int) -> None:
        own = [chunks(text, size) if size else [text] for text in texts]
        self.pieces = [piece for one in own for piece in one]
        self.starts = np.cumsum([0, *map(len, own)])[:-1]
        self.words = [words(piece) for piece in self.pieces]
        self.stems = [stem_words(one) for one in self.words]
        self.containing = Counter(stem for one in self.stems for stem in set(one))
        self.vectors = load_embedder("wordllama").embed(self.pieces)
        self.indexes = {"words": index_of(self.stems)}
        # Late interaction needs the distinct words of each piece; an empty piece has one.
        distinct = [list(dict.fromkeys(one)) or ["the"] for one in self.words]
        self.vocabulary = {word: n for n, word in enumerate(dict.fromkeys(chain(*distinct)))}
        self.places = np.array([self.vocabulary[word] for one in distinct for word in one])
        self.bounds = np.cumsum([0, *map(len, distinct)])[:-1]
        self.word_vectors = vectors_of(list(self.vocabulary))
        self.word_stems = np.array(stem_words(list(self.vocabulary)))

    def idf(self, stems: Sequence[str]) -> FloatArray:
        n = np.array([self.containing[stem] for stem in stems])
        found: FloatArray = np.log(1 + (len(self.pieces) - n + 0.5) / (n + 0.5)).astype(np.float32)
        return found

    def best(self, scores: NDArray[np.floating]) -> FloatArray:
        best: FloatArray = np.maximum.reduceat(scores, self.starts).astype(np.float32)
        return best

    def matches(self, stems: Sequence[str], given: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """For each word of the query and piece: is it there, and how near is the nearest word?"""
        exact = np.array(stems)[:, None] == self.word_stems
        near = np.where(exact, 1, np.minimum(vectors_of(given) @ self.word_vectors.T, 0.999))
        found = (
            np.maximum.reduceat(one[:, self.places].astype(np.float32), self.bounds, axis=1)
            for one in (exact, near)
        )
        return next(found), next(found)


def index_of(documents: Sequence[Sequence[str]], k1: float = 1.5, b: float = 0.75) -> Bm25Index:
    index = Bm25Index(k1, b)
    index.add(documents)
    return index


def add_indexes(name: str, grain: Grain) -> None:
    grain.indexes["near pairs"] = index_of([near_pairs(one) for one in grain.stems])
    if name != "a sentence":
        for k1, b in PARAMETERS:
            grain.indexes[f"k1={k1}, b={b}"] = index_of(grain.stems, k1, b)


def weighted_mean(grain: Grain) -> FloatArray:
    """The vector of each piece as the mean of its words' vectors, weighted by idf."""
    rows = np.zeros_like(grain.vectors)
    for row, given, stems in zip(rows, grain.words, grain.stems, strict=True):
        if given:
            row[:] = grain.idf(stems) @ vectors_of(given)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    return rows


def lexical(name: str, grain: Grain, given: Sequence[str]) -> Iterator[tuple[str, FloatArray]]:
    """BM25 with other parameters and of pairs, coverage and late interaction."""
    stems = stem_words(list(given))
    for kind, index in grain.indexes.items():
        terms = near_pairs(stems) if kind == "near pairs" else stems
        yield f"{kind} of {name}", grain.best(index.scores(terms))
    by_stem = dict(zip(stems, given, strict=True))
    if by_stem:
        idf = grain.idf(list(by_stem))
        covered, near = grain.matches(list(by_stem), list(by_stem.values()))
        yield f"coverage by {name}", grain.best(idf @ covered)
        yield f"nearest words of {name}", grain.best(near.sum(axis=0))
        yield f"nearest words of {name}, by idf", grain.best(idf @ near)
        yield f"nearest words of {name}, over 0.5", grain.best(idf @ np.where(near > 0.5, near, 0))
    else:
        nothing = np.zeros(len(grain.starts), np.float32)
        for label in (f"coverage by {name}", f"nearest words of {name}"):
            yield label, nothing
        for label in (", by idf", ", over 0.5"):
            yield f"nearest words of {name}{label}", nothing


def expanded(grains: Mapping[str, Grain], text: str) -> Iterator[tuple[str, FloatArray]]:
    """Feedback from the best passages: Rocchio over vectors, RM3 over words."""
    passages, vector = grains["a passage"], embed_query(load_embedder("wordllama"), text)
    stems = stem_words(words(text))
    first = scaled(passages.indexes["words"].scores(stems)) + scaled(passages.vectors @ vector)
    order = np.argsort(-first, kind="stable")
    for count in (5, 10):
        moved = vector + passages.vectors[order[:count]].mean(axis=0)
        moved /= np.linalg.norm(moved) or 1
        model: Counter[str] = Counter()
        for place in order[:count].tolist():
            own = passages.stems[place]
            for stem in own:
                model[stem] += float(first[place]) / len(own)  # type: ignore[assignment]
        idf = passages.idf(list(model))
        weights = {stem: model[stem] * float(one) for stem, one in zip(model, idf, strict=True)}
        best = sorted(weights, key=lambda stem: -weights[stem])[:20]
        for name in ("a passage", "a chunk"):
            grain = grains[name]
            index = grain.indexes["words"]
            added = sum((weights[stem] * index.scores([stem]) for stem in best), np.zeros(1))
            both = scaled(index.scores(stems)) + 0.5 * scaled(np.asarray(added, np.float32))
            yield f"Rocchio of {name}, {count} passages", grain.best(grain.vectors @ moved)
            yield f"RM3 of {name}, {count} passages", grain.best(both)


def system_legs(
    chat: str, memories: list[Memory], queries: Sequence[Query]
) -> tuple[Multigrain, list[dict[str, FloatArray]]]:
    """The legs of multigrain as choose_grains.py left it, and those of its two options."""
    found: list[dict[str, FloatArray]] = [{} for _ in queries]
    for system in (Multigrain(phrases=True, best=3, cache=False), Multigrain(cache=False)):
        system.reset(chat)
        system.remember(memories)
        system.ready()
        for legs, query in zip(found, queries, strict=True):
            if legs:  # of the first system, whose words are those with phrases
                legs |= {name.replace("words", "phrases"): legs[name] for name in WORDS}
            legs |= system.legs(query)
    return system, found


def view_of_system(chat: str, memories: list[Memory], asked: Asked) -> View:
    queries = [Query(question.text, question.now) for question, _ in asked]
    system, legs = system_legs(chat, memories, queries)
    places = {memory.id: place for place, memory in enumerate(memories)}
    return View(
        chat,
        MemoryFacts.of(system._facts.values),
        legs,
        [system.of_meant_days(query) for query in queries],
        [{places[id] for id in evidence} for _, evidence in asked],
    )


def view_with_candidates(chat: str, memories: list[Memory], asked: Asked) -> View:
    view = view_of_system(chat, memories, asked)
    grains = {name: Grain([one.text for one in memories], size) for name, size in GRAINS.items()}
    for name, grain in grains.items():
        add_indexes(name, grain)
    means = {name: weighted_mean(grains[name]) for name in ("a chunk", "a passage")}
    for legs, (question, _) in zip(view.legs, asked, strict=True):
        given = words(question.text)
        vector = embed_query(load_embedder("wordllama"), question.text)
        raw: dict[str, FloatArray] = dict(expanded(grains, question.text))
        for name, grain in grains.items():
            raw |= lexical(name, grain, given)
            if name != "the whole":
                similar = grain.vectors @ vector
                by_words = grain.indexes["words"].scores(stem_words(given))
                raw[f"vectors of {name}"] = grain.best(similar)
                raw[f"vectors of {name}, three best"] = mean_of_best(similar, grain.starts, 3)
                raw[f"words of {name}, three best"] = mean_of_best(by_words, grain.starts, 3)
        for name in ("vectors of a chunk", "vectors of a passage"):  # the system has these legs
            del raw[name]
        del raw["vectors of a passage, three best"]
        for name, mean in means.items():
            by_idf = grains[name].idf(stem_words(given)) @ vectors_of(given) if given else vector
            by_idf /= np.linalg.norm(by_idf) or 1
            raw[f"vectors of {name}, by idf"] = grains[name].best(mean @ by_idf)
        fused = {f"{leg}, {how}": scaled(legs[leg], how) for leg in list(legs) for how in FUSIONS}
        legs |= fused | {name: scaled(one) for name, one in raw.items() if name not in legs}
    return view


def read(archive: Path, size: str, scored: Callable[..., View]) -> Data:
    given = list(given_views(archive, size))
    with Pool(WORKERS) as pool:
        views = pool.starmap(scored, [own for _, *own in given], chunksize=1)
    found: Data = {name: [] for name in VIEWS}
    for (name, *_), view in zip(given, views, strict=True):
        found[name].append(view)
    return found


def changes(legs: Sequence[str], mix: Mix) -> Iterator[Change]:
    """What is tried: other scales, other words, and each candidate as a further leg."""
    yield Change("words with phrases", {leg: leg.replace("words", "phrases") for leg in WORDS})
    for how in FUSIONS:
        yield Change(f"fusion of {how}", {leg: f"{leg}, {how}" for leg in mix.legs})
    for k1, b in PARAMETERS:
        yield Change(
            f"k1={k1}, b={b}", {leg: leg.replace("words", f"k1={k1}, b={b}") for leg in WORDS}
        )
    for leg in legs:
        if not leg.endswith(FUSIONS) and not leg.startswith(("k1", "phrases")):
            yield Change(f"and {leg}", {"": leg})
    yield Change("several passages for the best", {VECTORS[1]: "vectors of several passages"})


def is_better(now: Measured, before: Measured) -> bool:
    """By two standard errors over chats, and in no view worse."""
    apart = now.by_chat - before.by_chat
    loses = any(now.by_view[view].mean() < before.by_view[view].mean() for view in VIEWS)
    return not loses and bool(apart.mean() > 2 * apart.std(ddof=1) / len(apart) ** 0.5)


_data: Data = {}
"""What the processes of a pool measure on."""


def measure_here(mix: Mix) -> Measured:
    return measure(_data, mix)


def choose(data: Data) -> dict[str, Mix]:
    """The mix before all changes, and after each that is taken."""
    steps, chosen = {"before": START}, START
    candidates = sorted(data["message"][0].legs[0])
    with Pool(WORKERS, _data.update, (data,)) as pool:
        while True:
            tried = [(one.label, one.of(chosen)) for one in changes(candidates, chosen)]
            mixes = {label: mix for label, mix in tried if mix}
            before, *found = pool.map(measure_here, [chosen, *mixes.values()], chunksize=1)
            names, rule = head("change").splitlines()
            print(f"\n{names} difference |\n{rule}---|\n{line('none', before)} |")
            better = {}
            for (label, mix), now in zip(mixes.items(), found, strict=True):
                passes = is_better(now, before)
                print(line(label, now), difference(now, before), "passes |" if passes else "|")
                if passes:
                    better[now.overall] = label, mix
            if not better:
                print("\nno change passes")
                return steps
            label, chosen = better[max(better)]
            steps[label] = chosen
            print(f"\ntaken: {label}", flush=True)


def main(chosen_on: Path, held_out: Path) -> None:
    data = read(chosen_on, "100K", view_with_candidates)
    steps = choose(data)
    *_, now = steps.values()
    print(f"\nchosen: {now}\n")
    rows = {"bm25": Mix(("words of the whole",)), "hybrid": Mix(HYBRID)} | steps
    for name, other in (("100K", data), ("500K, held out", read(held_out, "500K", view_of_system))):
        print(head(f"BEAM {name}"))
        found = {label: measure(other, mix) for label, mix in rows.items()}
        for label, one in found.items():
            print(line(label, one))
        *_, last = found.values()
        for label in ("hybrid", "before"):
            print(f"\nnow against {label}: {difference(last, found[label])}")
        print()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
