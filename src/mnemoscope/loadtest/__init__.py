"""Load tests: latency, throughput, errors and recall of a system that many clients use at once."""

from mnemoscope.loadtest.load_result import LoadOptions, LoadResult
from mnemoscope.loadtest.load_run import LoadUpdate, run_load

__all__ = ["LoadOptions", "LoadResult", "LoadUpdate", "run_load"]
