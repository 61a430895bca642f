"""The tests of the gRPC connectors, in a separate process.

A process that has used gRPC must not fork, and nearly every other test forks: see
mnemoscope.connectors.grpc.channel.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = ("grpc_connector_cases.py", "recall_bench_cases.py", "grpc_hostile_cases.py")


@pytest.fixture(scope="module")
def done() -> subprocess.CompletedProcess[str]:
    """The tests of all three files, in one process."""
    words = ["-m", "pytest", "-v", "-rs", "-p", "no:xdist", *(str(HERE / cases) for cases in CASES)]
    alone = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    return subprocess.run(
        [sys.executable, *words],
        cwd=HERE.parent.parent,
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("cases", CASES)
def test_every_case_passes(cases: str, done: subprocess.CompletedProcess[str]) -> None:
    said = done.stdout[-5000:] + done.stderr[-2000:]
    assert re.search(rf"/{cases} s*\.", done.stdout), said  # one has passed
    assert done.returncode == 0, said
