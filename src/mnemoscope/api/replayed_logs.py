"""Replay what an agent asked its memory on other systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mnemoscope.api.arguments import Where
from mnemoscope.runner.run_setup import Systems, read_systems

if TYPE_CHECKING:
    from mnemoscope.runner.replay_calls import Replay


def replay(
    log: Where,
    *,
    systems: Systems,
    k: int = 10,
    against: Literal["", "log", "first"] = "",
    fields: Mapping[str, str] | None = None,
    done: Callable[[str], None] | None = None,
) -> Replay:
    """Replay a log of tool calls on systems, and say which recalls would change.

    `log` has MCP messages, or JSON lines in which `fields` says where op, at, id, text, query and
    hits are. `against` is what recalls are compared with: the logged replies (`log`) or the first
    system (`first`). `done` is told which system is next. Secrets are masked as in an import.
    """
    from mnemoscope.runner.logged_calls import read_log
    from mnemoscope.runner.replay_calls import replay_log
    from mnemoscope.systems.loader import plan

    plans = [plan(spec, thing) for spec, thing in read_systems(systems)]
    return replay_log(read_log(Path(log), fields), plans, k, against=against, done=done)
