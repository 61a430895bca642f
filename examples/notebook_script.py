"""Three systems and the baselines on your own memories, under a protocol."""

import mnemoscope as ms

options = {"data": "examples/strata", "protocol": "claude-memory-strata-1", "out": "runs/strata"}
results = ms.run("strata", systems=["bm25", "dense", "hybrid"], **options)
figures = results.to_frame()
comparison = ms.compare(results["bm25"], results["hybrid"])
missed = results["bm25"].failed()
print(figures, comparison, missed[["question", "text", "failure"]], sep="\n\n")
