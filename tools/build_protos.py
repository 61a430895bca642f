"""Generate the gRPC messages from their .proto files: the same bytes every time.

    python tools/build_protos.py

Only messages: the connectors name the methods themselves. Needs grpcio-tools.
"""

from __future__ import annotations

import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
PROTOS = Path("mnemoscope/connectors/grpc/protos")


def build(target: Path) -> list[Path]:
    """Write a *_pb2.py below `target` for each .proto; the files that were written."""
    from grpc_tools import protoc

    names = sorted(path.name for path in (SOURCES / PROTOS).glob("*.proto"))
    # Below src, so that the files are known by a name that nobody else's proto has.
    files = [str(PROTOS / name) for name in names]
    code = protoc.main(["protoc", f"-I{SOURCES}", f"--python_out={target}", *files])
    if code:
        sys.exit(f"protoc failed with exit code {code}")
    return [target / PROTOS / f"{Path(name).stem}_pb2.py" for name in names]


if __name__ == "__main__":
    build(SOURCES)
