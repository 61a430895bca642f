"""A server for mnemoscope.v1 in Python that uses only the .proto file of Mnemoscope.

    pip install grpcio grpcio-tools
    python examples/adapters/grpc_server.py 50052
    mnemoscope run locomo --system grpc:127.0.0.1:50052 --out runs/toy

A toy memory that ranks by shared words. (A system that Mnemoscope can import needs no server of
its own: `mnemoscope serve grpc my_memory:Mine`.)
"""

from __future__ import annotations

import re
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

SHIPPED = Path(__file__).parents[2] / "src/mnemoscope/connectors/grpc/protos"
sys.path.append(str(SHIPPED))
v1, services = grpc.protos_and_services("mnemoscope_v1.proto")


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


class SharedWords(services.MemoryServicer):  # type: ignore[misc]
    """Ranks by shared words; each space is a list of memories; ties: the later memory first."""

    def __init__(self) -> None:
        self.spaces: dict[str, list[tuple[str, set[str]]]] = {}

    def Hello(self, asked: Any, context: Any) -> Any:
        methods = ["reset", "remember", "recall", "forget", "close"]
        return v1.HelloResponse(
            name="shared-words", version="1.0", methods=methods, identity_json='{"model": "none"}'
        )

    def Reset(self, asked: Any, context: Any) -> Any:
        self.spaces.pop(asked.space, None)
        space = uuid.uuid4().hex  # a name that was never used before
        self.spaces[space] = []
        return v1.ResetResponse(space=space)

    def Remember(self, asked: Any, context: Any) -> Any:
        rejected: dict[str, str] = {}
        for part in asked:
            for memory in part.memories:
                if held := words(memory.text):
                    self.space(part, context).append((memory.id, held))
                else:
                    rejected[memory.id] = "no words in it"
        return v1.Receipt(rejected=rejected)

    def Recall(self, asked: Any, context: Any) -> Any:
        wanted = words(asked.query.text)
        scored = [(id, len(wanted & held)) for id, held in reversed(self.space(asked, context))]
        best = sorted(scored, key=lambda hit: -hit[1])[: asked.k]
        return v1.RecallResponse(hits=[v1.Hit(id=id, score=score) for id, score in best])

    def Forget(self, asked: Any, context: Any) -> Any:
        gone, held = {memory.id for memory in asked.memories}, self.space(asked, context)
        held[:] = [one for one in held if one[0] not in gone]
        return v1.ForgetResponse()

    def Close(self, asked: Any, context: Any) -> Any:
        self.spaces.pop(asked.space, None)
        return v1.CloseResponse()

    def space(self, asked: Any, context: Any) -> list[tuple[str, set[str]]]:
        if asked.space not in self.spaces:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no space {asked.space}")
        return self.spaces[asked.space]


if __name__ == "__main__":
    server = grpc.server(ThreadPoolExecutor(8))
    services.add_MemoryServicer_to_server(SharedWords(), server)
    port = server.add_insecure_port(f"127.0.0.1:{sys.argv[1] if len(sys.argv) > 1 else 50052}")
    server.start()
    print(f"serving on 127.0.0.1:{port}", flush=True)
    server.wait_for_termination()
