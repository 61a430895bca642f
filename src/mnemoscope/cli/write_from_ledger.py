"""`mnemoscope personas generate --from-ledger`: a simulated life, retold by a model."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mnemoscope.cli.writing import Outcome, Tell, Writing, run_pass

if TYPE_CHECKING:
    from mnemoscope.personas.write.llm_writer import LlmWriter
    from mnemoscope.personas.write.persona_files import PersonaFiles


def from_ledger(writing: Writing, out: Path, *, overwrite: bool = False) -> int:
    """Retell the simulated life in --persona into the new folder; the exit code."""
    if not (writing.estimate or writing.dry_run):
        return _retell(writing, out, overwrite)
    with TemporaryDirectory(prefix="mnemoscope-retold-") as folder:
        copy = Path(folder) / writing.persona.resolve().name
        if out.is_dir():
            shutil.copytree(out, copy)
        return _retell(writing, copy, overwrite)


def _retell(writing: Writing, out: Path, overwrite: bool) -> int:
    from mnemoscope.personas.write.from_ledger import Retelling
    from mnemoscope.personas.write.persona_files import open_persona_files

    source = open_persona_files(writing.persona, writing.arcs)
    days = writing.days(source)
    retelling = Retelling(source, out)
    retelling.open()

    def work(home: PersonaFiles, desk: LlmWriter, tell: Tell) -> Outcome:
        asked = retelling.days(days) if overwrite else retelling.missing(home, days)
        have = set(retelling.days(days)) - set(retelling.missing(home, days))
        made: list[int] = []
        for day in retelling.write(home, desk, asked, anew=overwrite):
            made.append(day)
            have.add(day)
            tell(f"Generated day {day}/{home.days} ({len(have)} unique)")
        missing = [f"day {day}" for day in asked if day not in set(made)]
        return Outcome(f"{home.beside('memories')}: {len(made):,} days retold", missing)

    there = replace(writing, persona=out, arcs=source.arcs_file.name)
    return run_pass(there, "from-ledger", work, fresh=overwrite)
