"""The simulator: a story rolled out into daily logs, a ledger of facts and questions."""

from mnemoscope.personas.simulate.history_files import (
    SimulatedHistory,
    history_files,
    list_histories,
    write_history,
)
from mnemoscope.personas.simulate.simulator import (
    WrittenHistory,
    simulate,
    simulate_persona,
    simulate_personas,
)
from mnemoscope.personas.simulate.story import (
    SHIPPED,
    Story,
    find_stories,
    read_story,
    shipped_story,
)

__all__ = [
    "SHIPPED",
    "SimulatedHistory",
    "Story",
    "WrittenHistory",
    "find_stories",
    "history_files",
    "list_histories",
    "read_story",
    "shipped_story",
    "simulate",
    "simulate_persona",
    "simulate_personas",
    "write_history",
]
