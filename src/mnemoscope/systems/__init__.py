"""Memory systems under test: one module a system, all with the same methods.

`SYSTEMS` lists the built-in systems and the integrations; `module:Name` and the entry-point group
`mnemoscope.systems` add others. `CONNECTORS` reach systems in other processes:
`stdio:python adapter.py`.
"""

from typing import NamedTuple

from mnemoscope import integrations
from mnemoscope._store.registry import Entry, Registry

BUILT_IN = {
    "none": Entry(
        "mnemoscope.systems.builtin.baselines:NoMemory", "recalls nothing: the lower bound"
    ),
    "random": Entry(
        "mnemoscope.systems.builtin.baselines:Random", "a seeded random ranking: chance level"
    ),
    "recency": Entry("mnemoscope.systems.builtin.baselines:Recency", "the latest memories first"),
    "oracle": Entry(
        "mnemoscope.systems.builtin.baselines:Oracle", "gets the evidence: the upper bound"
    ),
    "full-context": Entry(
        "mnemoscope.systems.builtin.baselines:FullContextBaseline",
        "all memories in time order, whatever k is",
    ),
    "fts5": Entry(
        "mnemoscope.systems.builtin.fts5:Fts5", "SQLite full-text search, as agents use it"
    ),
    "bm25": Entry("mnemoscope.systems.builtin.bm25:Bm25", "lexical search (bm25s, English stems)"),
    "dense": Entry("mnemoscope.systems.builtin.dense:Dense", "embeddings of ~128-token chunks"),
    "hybrid": Entry("mnemoscope.systems.builtin.hybrid:Hybrid", "bm25 and dense, fused"),
    "multigrain": Entry(
        "mnemoscope.systems.builtin.multigrain:Multigrain",
        "words and vectors of wholes, chunks and passages, with dates",
    ),
    "scoped": Entry(
        "mnemoscope.systems.builtin.scoped:Scoped",
        "search among the memories that may be told where the question is asked",
    ),
    "graph": Entry(
        "mnemoscope.systems.builtin.graph:EntityGraph", "personalised PageRank over shared entities"
    ),
}
"""The systems that need no other package or server."""
SYSTEMS = Registry("system", {**BUILT_IN, **integrations.entries()}, group="mnemoscope.systems")
CONNECTORS = Registry(
    "connector",
    {
        "stdio": Entry(
            "mnemoscope.connectors.stdio:Stdio",
            "an executable that reads and writes JSON lines: stdio:COMMAND",
        ),
        "grpc": Entry(
            "mnemoscope.connectors.grpc.memory_client:Grpc",
            "a server of the gRPC service mnemoscope.v1: grpc:HOST:PORT",
        ),
        "recall-bench": Entry(
            "mnemoscope.connectors.grpc.recall_bench_client:RecallBench",
            "a server written for Recall Bench: grpc://HOST:PORT or recall-bench:HOST:PORT",
        ),
        "recall-bench-js": Entry(
            "mnemoscope.connectors.recall_bench_js:RecallBenchJs",
            "a JavaScript adapter of Recall Bench: recall-bench-js:./adapter.mjs",
        ),
        "mcp": Entry(
            "mnemoscope.connectors.mcp.mcp_connector:Mcp",
            "an MCP memory server: mcp:COMMAND or mcp:http://host:port/mcp, with mapping=",
        ),
        "http": Entry(
            "mnemoscope.connectors.http:Http",
            "a server of our HTTP contract, or a REST API with a mapping: http:URL",
        ),
    },
)
"""The part of a spec before its colon; the rest of the name is the connector's `address`."""
_RECALL_BENCH = ("recall-bench", "recall-bench-js")
BASELINES = ("random", "bm25", "oracle")
"""The baselines that run beside the systems by default: chance, lexical search, upper bound."""


class Connected(NamedTuple):
    """The name of a system behind a connector, in its two parts."""

    connector: str
    """What stands before the colon; the name of a connector, if the system is behind one."""
    address: str


def connector_of(name: str) -> Connected:
    """Split the name of a system; `grpc://HOST` is how Recall Bench names a server."""
    connector, _, address = name.partition(":")
    if connector == "grpc" and address.startswith("//"):
        return Connected("recall-bench", name)
    return Connected(connector, address)


def is_recall_bench(name: str) -> bool:
    """Whether a system is an adapter of Recall Bench, which answers by itself."""
    return connector_of(name).connector in _RECALL_BENCH


__all__ = [
    "BASELINES",
    "BUILT_IN",
    "CONNECTORS",
    "SYSTEMS",
    "Connected",
    "connector_of",
    "is_recall_bench",
]
