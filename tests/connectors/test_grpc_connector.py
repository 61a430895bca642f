"""The tests of the gRPC connectors, in a separate process.

A process that has used gRPC must not fork, and nearly every other test forks: see
mnemoscope.connectors.grpc.channel.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "cases", ["grpc_connector_cases.py", "recall_bench_cases.py", "grpc_hostile_cases.py"]
)
def test_every_case_passes(cases: str) -> None:
    words = ["-m", "pytest", "-v", "-rs", "-p", "no:xdist", str(HERE / cases)]
    alone = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=HERE.parent.parent,
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
