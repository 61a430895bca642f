"""The gRPC connectors, for two services; docs/grpc.md describes both.

`recall.bench.MemoryBenchService` is the service of Recall Bench, so that adapters that were written
for it work here, and ours work there. `mnemoscope.v1.Memory` has all our verbs.
"""

from mnemoscope._store.errors import MissingExtra

try:
    import grpc  # noqa: F401
    import grpc_health  # noqa: F401
except ImportError as error:
    raise MissingExtra("the gRPC connector", "pip install 'mnemoscope[grpc]'") from error

DEFAULT_PORT = 50052
"""The default port of Recall Bench."""
RECALL_BENCH = "recall.bench.MemoryBenchService"
MEMORY = "mnemoscope.v1.Memory"
LARGEST_MESSAGE = 256 << 20
"""Bytes of a message that our clients and servers receive."""
SIZE_LIMITS = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", -1),
)
"""Options of channels and servers: a scenario can be larger than the default of four megabytes."""

__all__ = ["DEFAULT_PORT", "LARGEST_MESSAGE", "MEMORY", "RECALL_BENCH", "SIZE_LIMITS"]
