"""The figures of a run in the shape of a task result of MTEB.

MTEB did not compute them: `mteb_version` is null, and the key `mnemoscope`, which MTEB ignores, has
the intervals, the status and the caveats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

import mnemoscope
from mnemoscope._store.errors import UsageError
from mnemoscope.datasets import dataset_info
from mnemoscope.exports.export_caveats import RunStatus
from mnemoscope.reports.run_view import RunView

_NAMES = {
    "recall": "recall_at_{}",
    "precision": "precision_at_{}",
    "ndcg": "ndcg_at_{}",
    "mrr": "mrr_at_{}",
    "hit": "hit_rate_at_{}",
}
_ENGLISH = ("locomo", "longmemeval", "tofu")
_UNKNOWN = "und-Zyyy"
"""An undetermined language in an undetermined script."""


def mteb_file(view: RunView, status: RunStatus, caveats: Sequence[str]) -> bytes:
    """The content of TASK.json of one system."""
    figures = view.metrics["overall"]
    about = view.manifest.identity["benchmark"]
    if not figures:
        raise UsageError(f"{view.path}: no question with evidence was measured")
    named = {name: mteb_name(name, view.metrics["depth"]) for name in figures}
    scores = {other: figures[name]["mean"] for name, other in named.items() if other}
    main = dataset_info(str(about["name"])).main_metric
    main = main if named.get(main) else next(name for name, other in named.items() if other)
    languages = ["eng-Latn"] if about["name"] in _ENGLISH else [_UNKNOWN]
    latency = view.timing["recall_ms"] or {"mean": 0.0, "n": 0}
    seconds = (view.timing["index_ms"] + latency["mean"] * latency["n"]) / 1000
    content: dict[str, Any] = {
        "dataset_revision": ",".join(map(str, about.get("sha256", ()))),
        "task_name": str(about["name"]),
        "mteb_version": None,
        "scores": {
            "test": [
                {
                    **scores,
                    "main_score": figures[main]["mean"],
                    "hf_subset": "default",
                    "languages": languages,
                }
            ]
        },
        "evaluation_time": round(seconds, 3),
        "kg_co2_emissions": None,
        "mnemoscope": {
            "version": mnemoscope.__version__,
            "system": view.label,
            "benchmark": view.benchmark,
            "main_score": named[main],
            "status": status.status,
            "failed_gates": status.failed,
            "questions": view.metrics["questions"],
            "ci95": {other: figures[name]["ci95"] for name, other in named.items() if other},
            "vacuous": [o for n, o in named.items() if o and figures[n].get("vacuous")],
            "bounds": {o: b for n, o in named.items() if o and (b := figures[n].get("bounds"))},
            "caveats": list(caveats),
        },
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def mteb_name(name: str, depth: int) -> str:
    """MTEB's name of a metric; empty if it has none. Our map is over the whole ranking."""
    kind, _, k = name.partition("@")
    if kind == "map":
        return f"map_at_{depth}"
    return _NAMES.get(kind, "").format(k)
