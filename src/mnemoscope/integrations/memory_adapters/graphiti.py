"""Graphiti, Zep's engine, on Kuzu: one database and group a scope, one episode a memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from .common import Endpoint, MemoryAdapter, bytes_in, scratch, uuid_of

_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)
"""The time of undated memories: Graphiti requires one."""
_DIRECT = (
    "without a language model each memory is one unchanged fact: an edge between its speaker and "
    "its session"
)
_FOUND = "a hit is a fact that the language model extracted; its sources are the fact's episodes"


class Graphiti(MemoryAdapter):
    """Facts by full text and cosine, fused by reciprocal rank: Graphiti's EDGE_HYBRID_SEARCH_RRF.

    With a model, Graphiti extracts the facts (add_episode); without one, each memory is a fact.
    `threshold` is the least cosine of a fact, 0 for none; Graphiti's default is 0.6.
    """

    packages = ("graphiti-core", "kuzu")
    provenance = "metadata"

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__(threshold=threshold, search="EDGE_HYBRID_SEARCH_RRF")
        self._settings["ingestion"] = "add_episode" if self._endpoint.llm else "direct"
        self._threshold = threshold
        self._graph: Any = None
        self.notes = (
            _FOUND if self._endpoint.llm else _DIRECT,
            f"memories without a date are given {_UNDATED.date().isoformat()}",
            "Graphiti warns that it will drop Kuzu",
        )

    async def reset(self, scope: str) -> None:
        await self.close()
        self._folder = scratch("graphiti")
        self._group = self._folder.name
        self._ids: dict[str, str] = {}
        """Our ids by the ids of the episodes."""
        self._graph = await _opened(str(self._folder / "kuzu"), self._endpoint)

    async def remember(self, memories: Sequence[Any]) -> dict[str, Any]:
        if self._endpoint.llm:
            return await self._extract(memories)
        rejected = {m.id: "Graphiti takes no empty fact" for m in memories if not m.text.strip()}
        await self._write([memory for memory in memories if memory.id not in rejected])
        return {"rejected": rejected}

    async def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        from graphiti_core.search.search_config_recipes import EDGE_HYBRID_SEARCH_RRF

        config = EDGE_HYBRID_SEARCH_RRF.model_copy(deep=True)
        # Facts with a cosine above this pass; -1.1 lets all pass.
        config.edge_config.sim_min_score = self._threshold or -1.1
        config.limit = k
        found = await self._graph.search_(query.text, config=config, group_ids=[self._group])
        hits = []
        for edge, score in zip(found.edges, found.edge_reranker_scores, strict=True):
            sources = [self._ids[episode] for episode in edge.episodes if episode in self._ids]
            hit = {"id": edge.uuid, "score": score, "text": edge.fact, "sources": sources}
            if not self._endpoint.llm:
                hit = {"id": sources[0], "score": score}
            hits.append(hit)
        return hits

    async def forget(self, selector: Any) -> None:
        """Remove the episode with its facts; facts that another episode stated first stay."""
        for episode in [own for own, id in self._ids.items() if id in selector.ids]:
            await self._graph.remove_episode(episode)
            del self._ids[episode]

    async def stats(self) -> dict[str, int]:  # type: ignore[override]  # coroutines are awaited
        records, _, _ = await self._graph.driver.execute_query(
            "MATCH (fact:RelatesToNode_) RETURN count(*) AS facts"
        )
        return {"index_bytes": bytes_in(self._folder), "facts": records[0]["facts"]}

    async def close(self) -> None:
        if self._graph is not None:
            driver, self._graph = self._graph.driver, None
            driver.client.close()
            driver.db.close()

    async def _extract(self, memories: Sequence[Any]) -> dict[str, Any]:
        from graphiti_core.nodes import EpisodeType

        rejected = {}
        for memory in memories:
            try:
                added = await self._graph.add_episode(
                    name=memory.session or memory.id,
                    episode_body=memory.text,
                    source_description=memory.speaker or "conversation",
                    reference_time=memory.at or _UNDATED,
                    source=EpisodeType.text,
                    group_id=self._group,
                )
            except Exception as error:
                # Graphiti writes an episode after its facts are extracted, so nothing was stored.
                rejected[memory.id] = f"add_episode: {type(error).__name__}: {error}"
                continue
            self._ids[added.episode.uuid] = memory.id
            if not any(added.episode.uuid in edge.episodes for edge in added.edges):
                rejected[memory.id] = "the language model found no fact in it"
        return {"rejected": rejected}

    async def _write(self, memories: Sequence[Any]) -> None:
        from graphiti_core.edges import EntityEdge, EpisodicEdge
        from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
        from graphiti_core.utils.bulk_utils import add_nodes_and_edges_bulk

        group = {"group_id": self._group}
        people: dict[str, Any] = {}
        episodes, mentions, facts = [], [], []
        # Graphiti embeds facts on one line.
        texts = [memory.text.replace("\n", " ") for memory in memories]
        for memory, vector in zip(memories, self._embedded(texts), strict=True):
            at = {"created_at": memory.at or _UNDATED}
            ends = [memory.speaker or "somebody", memory.session or "a conversation"]
            for name in ends:
                if name not in people:
                    own = self._uuid("entity", name)
                    people[name] = EntityNode(uuid=own, name=name, **group, **at)
            fact = EntityEdge(
                uuid=self._uuid("fact", memory.id),
                source_node_uuid=people[ends[0]].uuid,
                target_node_uuid=people[ends[1]].uuid,
                name="STATED",
                fact=memory.text,
                fact_embedding=vector,
                episodes=[self._uuid("episode", memory.id)],
                valid_at=memory.at,
                **group,
                **at,
            )
            episode = EpisodicNode(
                uuid=fact.episodes[0],
                name=memory.session or memory.id,
                content=memory.text,
                source=EpisodeType.text,
                source_description=memory.speaker or "conversation",
                valid_at=memory.at or _UNDATED,
                # remove_episode deletes only the facts that are listed here.
                entity_edges=[fact.uuid],
                **group,
                **at,
            )
            mentions += [
                EpisodicEdge(
                    uuid=self._uuid(name, memory.id),
                    source_node_uuid=episode.uuid,
                    target_node_uuid=people[name].uuid,
                    **group,
                    **at,
                )
                for name in dict.fromkeys(ends)
            ]
            episodes.append(episode)
            facts.append(fact)
            self._ids[episode.uuid] = memory.id
        for node, vector in zip(people.values(), self._embedded([*people]), strict=True):
            node.name_embedding = vector
        await add_nodes_and_edges_bulk(
            self._graph.driver, episodes, mentions, [*people.values()], facts, self._graph.embedder
        )

    def _embedded(self, texts: list[str]) -> list[list[float]]:
        return self._endpoint.embed(texts) if texts else []

    def _uuid(self, *words: str) -> str:
        return uuid_of(self._group, *words)


async def _opened(path: str, endpoint: Endpoint) -> Any:
    os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
    os.environ["EMBEDDING_DIM"] = str(endpoint.dimensions)
    from graphiti_core import Graphiti as System
    from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
    from graphiti_core.driver.driver import GraphProvider
    from graphiti_core.driver.kuzu_driver import KuzuDriver
    from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
    from graphiti_core.graph_queries import get_fulltext_indices
    from graphiti_core.llm_client.config import LLMConfig
    from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient

    driver = KuzuDriver(db=path)
    # Graphiti 0.31.1 reads this attribute, which its Kuzu driver does not have.
    driver._database = ""
    # With several threads, facts of equal score come in a varying order.
    await driver.execute_query("CALL threads=1")
    for index in get_fulltext_indices(GraphProvider.KUZU):
        await driver.execute_query(index)
    where = {"api_key": endpoint.key, "base_url": endpoint.url}
    model = LLMConfig(model=endpoint.llm or "none", small_model=endpoint.llm or "none", **where)
    embedder = OpenAIEmbedder(
        OpenAIEmbedderConfig(
            embedding_model=endpoint.embedder, embedding_dim=endpoint.dimensions, **where
        )
    )
    return System(
        graph_driver=driver,
        llm_client=OpenAIGenericClient(model),
        embedder=embedder,
        # Not used: the search fuses by rank. Without one, Graphiti requires a key for OpenAI.
        cross_encoder=OpenAIRerankerClient(model),
    )
