"""gRPC, both ways: memory systems that are servers, and a server for any system of ours.

Two services. `recall.bench.MemoryBenchService` is Recall Bench's, byte for byte on the wire, so
that adapters written for it work here and ours work there; `mnemoscope.v1.Memory` carries all our
verbs. docs/grpc.md shows both.
"""

from mnemoscope._store.errors import MissingExtra

try:
    import grpc  # noqa: F401
    import grpc_health  # noqa: F401
except ImportError as error:
    raise MissingExtra("the gRPC door", "pip install 'mnemoscope[grpc]'") from error

DEFAULT_PORT = 50052
"""Recall Bench's."""
RECALL_BENCH = "recall.bench.MemoryBenchService"
MEMORY = "mnemoscope.v1.Memory"
UNLIMITED = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)
"""Options of channels and servers: the usual four megabytes are less than a scenario can hold."""

__all__ = ["DEFAULT_PORT", "MEMORY", "RECALL_BENCH", "UNLIMITED"]
