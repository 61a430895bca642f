"""Convert our types to messages of mnemoscope.v1, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from mnemoscope._store.errors import BadReply
from mnemoscope._store.jsonl import printable
from mnemoscope.connectors.grpc import MEMORY
from mnemoscope.connectors.grpc.channel import RpcMethod
from mnemoscope.connectors.grpc.protos import mnemoscope_v1_pb2 as v1
from mnemoscope.types import Hit, Memory, Query, Receipt, Scalar

_LARGE = 1 << 20
"""Characters of memories in one message; servers usually accept four megabytes."""
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1

_TEXTS = ("id", "text", "session", "speaker", "part_of")
"""Fields of a memory that are sent without conversion."""

METHODS = {
    name: RpcMethod(
        MEMORY,
        name,
        getattr(v1, f"{name}Request"),
        v1.Receipt if name == "Remember" else getattr(v1, f"{name}Response"),
        streams=name == "Remember",
    )
    for name in "Hello Reset Remember Ready Recall Answer Forget Fork DropFork Stats Close".split()
}


def of_memory(memory: Memory) -> Any:
    return v1.MemoryRecord(
        **{field: printable(getattr(memory, field)) for field in _TEXTS},
        at=_written(memory.at),
        metadata={printable(key): _of_scalar(value) for key, value in memory.metadata.items()},
    )


def memory_of(record: Any) -> Memory:
    return Memory(
        **{field: getattr(record, field) for field in _TEXTS},
        at=_read(record.at),
        metadata={key: _scalar_of(value) for key, value in record.metadata.items()},
    )


def batches(space: str, memories: Sequence[Memory]) -> Iterator[Any]:
    """Split the memories into messages of limited size; at least one, which names the space."""
    message, size = v1.RememberRequest(space=space), 0
    for memory in memories:
        if size and size + len(memory.text) > _LARGE:
            yield message
            message, size = v1.RememberRequest(space=space), 0
        message.memories.append(of_memory(memory))
        size += len(memory.text)
    yield message


def of_query(query: Query) -> Any:
    return v1.Query(
        text=printable(query.text), now=_written(query.now), session=printable(query.session)
    )


def query_of(message: Any) -> Query:
    return Query(message.text, _read(message.now), message.session)


def of_hits(hits: Iterable[Hit]) -> Any:
    def of_hit(hit: Hit) -> Any:
        sources = map(printable, hit.sources)
        text = printable(hit.text)
        about = {"score": hit.score, "text": text, "sources": sources, "ordered": hit.ordered}
        return v1.Hit(id=printable(hit.id), **about)

    return v1.RecallResponse(hits=map(of_hit, hits))


def hits_of(message: Any) -> list[Hit]:
    def hit_of(hit: Any) -> Hit:
        score = hit.score if hit.HasField("score") else None
        return Hit(hit.id, score, hit.text, tuple(hit.sources), hit.ordered)

    return [hit_of(hit) for hit in message.hits]


def of_receipt(receipt: Receipt) -> Any:
    return v1.Receipt(rejected=receipt.rejected, merged=receipt.merged, truncated=receipt.truncated)


def receipt_of(message: Any) -> Receipt:
    return Receipt(dict(message.rejected), dict(message.merged), dict(message.truncated))


def _of_scalar(value: Scalar) -> Any:
    if isinstance(value, bool):
        return v1.Scalar(truth=value)
    if isinstance(value, int) and _SMALLEST <= value <= _LARGEST:
        return v1.Scalar(whole=value)
    if isinstance(value, float):
        return v1.Scalar(number=value)
    return v1.Scalar(text=printable(str(value)))


def _scalar_of(message: Any) -> Scalar:
    kind = message.WhichOneof("kind")
    value: Scalar = getattr(message, kind) if kind else ""
    return value


def _written(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""


def _read(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        raise BadReply(f"{text!r:.40} is not a time in ISO 8601") from None
