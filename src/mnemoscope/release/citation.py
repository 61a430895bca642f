"""The citation of a run: values base → new with intervals, protocol, artefacts and hashes.

It follows section 8 of pgmnemo's recall protocol. Only a VERIFIED run can be cited, and the word
“improvement” stands only where the comparison says “better”.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope._store.yaml import dump_yaml
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.comparison import Comparison, Row
from mnemoscope.analysis.verify import verify
from mnemoscope.protocols import Chosen, load_protocol
from mnemoscope.release.decide import standing
from mnemoscope.release.people import check_name
from mnemoscope.release.report_tables import p_equals, points, points_interval
from mnemoscope.text.display import one_line

_DISCLOSURES = {
    ("pgmnemo-recall", "longmemeval"): (
        "Embedder substitution of the protocol: BAAI/bge-m3 instead of the paper's "
        "NovaSearch/stella_en_1.5B_v5."
    ),
}
"""What a protocol demands to be said beside its figures, by its name and the dataset."""
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{one: f"\\{one}" for one in "{}$&#_%"},
}
Figures = Mapping[str, Mapping[str, Any]]


class NotCitable(MnemoscopeError):
    """A run whose figures must not be cited."""


class Citation(msgspec.Struct, frozen=True):
    """A run to be cited, in three formats."""

    text: str
    bibtex: str
    cff: str


class _Cited(msgspec.Struct, frozen=True):
    """A run that may be cited."""

    label: str
    path: str
    manifest: Manifest
    manifest_sha256: str
    figures: Figures
    chosen: Chosen

    @property
    def dataset(self) -> str:
        return str(self.manifest.identity["benchmark"]["name"])

    @property
    def finished(self) -> datetime:
        assert self.manifest.finished is not None, "a verified run is finished"
        return self.manifest.finished


def cite(
    run: RunDirectory, base: RunDirectory | None = None, *, author: str = "", corpus: str = ""
) -> Citation:
    """Cite a run, alone or against a base; `corpus` is how its dataset is cited.

    Raises NotCitable if one of the runs is not VERIFIED under its own protocol.
    """
    cited = _citable(run)
    before = _citable(base) if base else None
    author = check_name(author, "--author") if author else ""
    comparison = None
    if base and before:
        if before.chosen.id != cited.chosen.id:
            raise UsageError(
                f"{run.path} is under {cited.chosen.id}, {base.path} under {before.chosen.id}: "
                "cite runs of one protocol"
            )
        comparison = compare(base, run, metrics=_metrics(cited))
    lines = _lines(cited, before, comparison, corpus)
    return Citation(
        "\n".join(lines) + "\n",
        _bibtex(cited, lines, author),
        _cff(cited, before, lines, author, corpus),
    )


def _citable(run: RunDirectory) -> _Cited:
    found = verify(run)
    if found.status != "VERIFIED":
        failed = [f"{gate.name} ({gate.why})" for gate in found.gates if not gate.passed]
        raise NotCitable(
            f"{run.path} is {found.status} and cannot be cited: {'; '.join(failed)}. "
            f"`mnemoscope verify {run.path}` shows all gates"
        )
    manifest = run.manifest()
    return _Cited(
        run.label,
        _shown_path(run.path),
        manifest,
        sha256_file(run.manifest_path),
        run.read_json("metrics.json")["overall"],
        load_protocol(found.protocol),
    )


def _metrics(cited: _Cited) -> list[str]:
    """All metrics of the protocol, the primary one first: none is left out."""
    rules = cited.chosen.benchmark(cited.dataset)
    return list(dict.fromkeys([rules.primary, *rules.metrics]))


def _lines(
    cited: _Cited, before: _Cited | None, comparison: Comparison | None, corpus: str
) -> list[str]:
    protocol = cited.chosen
    rules = protocol.benchmark(cited.dataset)
    per = f"measured per {protocol.protocol.cite} ({protocol.id})"
    primary = comparison.row(rules.primary) if comparison else None
    if primary is not None and standing(primary) != "neutral":
        kind = "improvement" if standing(primary) == "improved" else "regression"
        opening = f"{primary.metric} {kind} of {_difference(primary)}, {per}."
    else:
        told = " No improvement is claimed." if comparison else ""
        opening = f"Recall {per}.{told}"
    about = f" ({corpus})" if corpus else ""
    disclosed = _DISCLOSURES.get((protocol.protocol.name, cited.dataset))
    return [
        opening,
        f"Corpus: {cited.dataset}{about}, {_measured(cited)} questions. "
        f"Embedder: {_embedder(cited.manifest)}.{f' {disclosed}' if disclosed else ''}",
        f"Result, {_name(before)} → {_name(cited)}:" if before else f"Result, {_name(cited)}:",
        *(f"- {_result(metric, cited, before, comparison)}" for metric in _metrics(cited)),
        *(f"Full run artefacts{of}: {one.path}/" for of, one in _sides(cited, before)),
        *(
            f"Hashes{of}: fingerprint {one.manifest.fingerprint}, manifest.json sha256 "
            f"{one.manifest_sha256}"
            for of, one in _sides(cited, before)
        ),
        f"Dataset sha256 {', '.join(cited.manifest.identity['benchmark']['sha256'])}, "
        f"protocol sha256 {protocol.sha256}.",
    ]


def _sides(cited: _Cited, before: _Cited | None) -> list[tuple[str, _Cited]]:
    return [(" of the base", before), (" of the new run", cited)] if before else [("", cited)]


def _result(
    metric: str, cited: _Cited, before: _Cited | None, comparison: Comparison | None
) -> str:
    new = _level(cited.figures[metric])
    if before is None or comparison is None:
        return f"{metric} {new}"
    row = comparison.row(metric)
    ns = " ns" if standing(row) == "neutral" else ""
    return f"{metric} {_level(before.figures[metric])} → {new}: {_difference(row)[:-1]}{ns})"


def _difference(row: Row) -> str:
    return f"{points(row.delta)} (95% CI {points_interval(row)}, {p_equals(row.p)})"


def _level(figure: Mapping[str, Any]) -> str:
    low, high = figure["ci95"]
    return f"{figure['mean']:.4f} [{low:.4f}, {high:.4f}]"


def _measured(cited: _Cited) -> int:
    return int(cited.figures[_metrics(cited)[0]]["n"])


def _name(cited: _Cited) -> str:
    """The label of a run, with the version that its system states."""
    system = cited.manifest.identity["system"]
    version = system.get("version") if isinstance(system, Mapping) else None
    return one_line(f"{cited.label} {version}" if version else cited.label, 200)


def _embedder(manifest: Manifest) -> str:
    system = manifest.identity["system"]
    hello = system.get("hello") or {}
    found = system.get("embedder") or (hello.get("identity") or {}).get("embedder")
    model = found.get("model") if isinstance(found, Mapping) else found
    return one_line(str(model), 200) if model else "none recorded"


def _shown_path(path: Path) -> str:
    """The path from here, if the run lies below; otherwise the whole path."""
    shown = os.path.relpath(path.resolve(), Path.cwd())
    return one_line(str(path.resolve()) if shown.startswith("..") else shown)


def _title(cited: _Cited) -> str:
    return f"{_name(cited)} on {cited.dataset}, measured under {cited.chosen.id}"


def _bibtex(cited: _Cited, lines: list[str], author: str) -> str:
    key = re.sub(r"[^A-Za-z0-9]+", "-", f"{cited.label}-{cited.dataset}").strip("-").lower()
    fields = {
        "title": "{" + _tex(_title(cited)) + "}",
        "author": "{" + _tex(author or "Not stated") + "}",
        "year": f"{cited.finished:%Y}",
        "month": f"{cited.finished:%m}".lstrip("0"),
        "howpublished": _tex(f"Run artefacts: {cited.path}/"),
        "note": _tex(" ".join(lines)),
    }
    content = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{{key or 'run'}-{cited.manifest.fingerprint[:8]},\n{content}\n}}\n"


def _tex(text: str) -> str:
    return "".join(_TEX.get(one, one) for one in one_line(text))


def _cff(cited: _Cited, before: _Cited | None, lines: list[str], author: str, corpus: str) -> str:
    protocol = cited.chosen
    hashes = {
        "fingerprint of the run": cited.manifest.fingerprint,
        "sha256 of manifest.json": cited.manifest_sha256,
        "sha256 of the protocol": protocol.sha256,
        **({"fingerprint of the base": before.manifest.fingerprint} if before else {}),
    }
    data = cited.manifest.identity["benchmark"]["sha256"]
    reference = {"type": "data", "title": cited.dataset, "authors": [{"name": "Not stated"}]}
    content = {
        "cff-version": "1.2.0",
        "message": "If you cite these figures, cite the protocol and the artefacts with them.",
        "type": "dataset",
        "title": _title(cited),
        "authors": [{"name": author or "Not stated"}],
        "date-released": f"{cited.finished:%Y-%m-%d}",
        "version": cited.manifest.fingerprint[:12],
        "abstract": one_line("\n".join(lines)),
        "identifiers": [
            {"type": "other", "value": value, "description": name}
            for name, value in [*hashes.items(), *(("sha256 of the dataset", one) for one in data)]
        ],
        "keywords": [cited.dataset, protocol.id, "memory", "retrieval"],
        "references": [{**reference, "notes": corpus} if corpus else reference],
    }
    return dump_yaml(content)
