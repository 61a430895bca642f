"""Our types as messages of mnemoscope.v1, and back."""

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
"""Characters of memories in one message; servers usually take four megabytes."""
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1

METHODS = {
    name: RpcMethod(MEMORY, name, request, response, streams=name == "Remember")
    for name, request, response in (
        ("Hello", v1.HelloRequest, v1.HelloResponse),
        ("Reset", v1.ResetRequest, v1.ResetResponse),
        ("Remember", v1.RememberRequest, v1.Receipt),
        ("Ready", v1.ReadyRequest, v1.ReadyResponse),
        ("Recall", v1.RecallRequest, v1.RecallResponse),
        ("Answer", v1.AnswerRequest, v1.AnswerResponse),
        ("Forget", v1.ForgetRequest, v1.ForgetResponse),
        ("Fork", v1.ForkRequest, v1.ForkResponse),
        ("DropFork", v1.DropForkRequest, v1.DropForkResponse),
        ("Stats", v1.StatsRequest, v1.StatsResponse),
        ("Close", v1.CloseRequest, v1.CloseResponse),
    )
}


def of_memory(memory: Memory) -> Any:
    return v1.MemoryRecord(
        id=printable(memory.id),
        text=printable(memory.text),
        at=_written(memory.at),
        session=printable(memory.session),
        speaker=printable(memory.speaker),
        metadata={printable(key): _of_scalar(value) for key, value in memory.metadata.items()},
        part_of=printable(memory.part_of),
    )


def memory_of(record: Any) -> Memory:
    return Memory(
        record.id,
        record.text,
        _read(record.at),
        record.session,
        record.speaker,
        {key: _scalar_of(value) for key, value in record.metadata.items()},
        record.part_of,
    )


def batches(space: str, memories: Sequence[Memory]) -> Iterator[Any]:
    """The memories in messages that are not too large; at least one, which names the space."""
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
    return v1.RecallResponse(
        hits=[
            v1.Hit(
                id=printable(hit.id),
                score=hit.score,
                text=printable(hit.text),
                sources=map(printable, hit.sources),
            )
            for hit in hits
        ]
    )


def hits_of(message: Any) -> list[Hit]:
    return [
        Hit(
            hit.id,
            hit.score if hit.HasField("score") else None,
            hit.text,
            tuple(hit.sources),
        )
        for hit in message.hits
    ]


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
        raise BadReply(f"{text!r:.40} is no time in ISO 8601") from None
