"""Memory systems under test: one module a system, all behind the same few verbs.

`SYSTEMS` lists the built-in ones and those on the shelf; `module:Name` and the entry-point group
`mnemoscope.systems` add anybody else's. `DOORS` are for systems that live elsewhere:
`stdio:python adapter.py`.
"""

from mnemoscope import integrations
from mnemoscope._store.registry import Entry, Registry

BUILT_IN = {
    "none": Entry("mnemoscope.systems.builtin.baselines:NoMemory", "recalls nothing: the floor"),
    "random": Entry("mnemoscope.systems.builtin.baselines:Random", "a seeded shuffle: chance"),
    "recency": Entry("mnemoscope.systems.builtin.baselines:Recency", "the latest memories first"),
    "oracle": Entry(
        "mnemoscope.systems.builtin.baselines:Oracle", "is told the evidence: the ceiling"
    ),
    "full-context": Entry(
        "mnemoscope.systems.builtin.baselines:FullContextBaseline",
        "everything, in time order, whatever k says",
    ),
    "fts5": Entry(
        "mnemoscope.systems.builtin.fts5:Fts5", "SQLite full-text search, as agents ship it"
    ),
    "bm25": Entry("mnemoscope.systems.builtin.bm25:Bm25", "lexical search (bm25s, English stems)"),
    "dense": Entry("mnemoscope.systems.builtin.dense:Dense", "embeddings of ~128-token chunks"),
    "hybrid": Entry("mnemoscope.systems.builtin.hybrid:Hybrid", "bm25 and dense, fused"),
    "graph": Entry(
        "mnemoscope.systems.builtin.graph:EntityGraph", "personalised PageRank over shared entities"
    ),
}
"""Those that come with Mnemoscope and need nothing else."""
SYSTEMS = Registry("system", {**BUILT_IN, **integrations.entries()}, group="mnemoscope.systems")
CONNECTORS = Registry(
    "door",
    {
        "stdio": Entry(
            "mnemoscope.connectors.stdio:Stdio",
            "any executable that speaks JSON lines: stdio:COMMAND",
        ),
        "grpc": Entry(
            "mnemoscope.connectors.grpc.memory_client:Grpc",
            "a server that offers mnemoscope.v1: grpc:HOST:PORT",
        ),
        "recall-bench": Entry(
            "mnemoscope.connectors.grpc.recall_bench_client:RecallBench",
            "an adapter written for Recall Bench: recall-bench:HOST:PORT",
        ),
        "mcp": Entry(
            "mnemoscope.connectors.mcp.mcp_connector:Mcp",
            "an MCP memory server: mcp:COMMAND or mcp:http://host:port/mcp, with mapping=",
        ),
        "http": Entry(
            "mnemoscope.connectors.http:Http",
            "a server that speaks our HTTP contract, or a REST API by a mapping: http:URL",
        ),
    },
)
"""What stands before the colon of a spec; the rest of its name is the door's `address`."""
BASELINES = ("random", "bm25", "oracle")
"""What runs beside every system unless it is told not to: chance, a plain baseline, the ceiling."""

__all__ = ["BASELINES", "BUILT_IN", "CONNECTORS", "SYSTEMS"]
