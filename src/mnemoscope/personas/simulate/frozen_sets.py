"""Frozen sets: simulated histories with fixed parameters, checked against hashes in the package.

A published set never changes. If the simulator changes, a new set gets a new name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from mnemoscope._store.errors import DataError
from mnemoscope.personas.simulate.simulator import WrittenHistory, simulate_personas


@dataclass(frozen=True)
class FrozenSet:
    """The parameters of a set, and the hash of each persona's files."""

    name: str
    edition: int
    days: int
    seed: int
    density: int
    sha256: Mapping[str, str] = field(hash=False)

    def write(self, out: Path, *, jobs: int = 1, force: bool = False) -> Iterator[WrittenHistory]:
        """Write the set; a persona whose files differ from the published ones is an error."""
        for written in simulate_personas(
            list(self.sha256),
            out,
            days=self.days,
            seed=self.seed,
            edition=self.edition,
            density=self.density,
            jobs=jobs,
            force=force,
        ):
            self.check(written.folder)
            yield written

    def check(self, folder: Path) -> None:
        """Compare the files of one persona on disk with the published hash."""
        found = digest_folder(folder, self.days)
        if found != self.sha256.get(folder.name):
            raise DataError(
                f"the files of {folder.name} are not those of {self.name} (sha256 {found}): they "
                "were changed, or this version of mnemoscope writes other texts; write the set "
                "into an empty folder with the version that published it",
                file=folder,
            )


def digest_folder(folder: Path, days: int) -> str:
    """One hash over the files of a simulated history, by name and content."""
    total = sha256()
    span = f"{days}d"
    paths = [folder / "persona.yaml", folder / f"arcs-{span}.yaml"]
    paths += [folder / f"qa-{span}" / name for name in ("questions.yaml", "ledger.jsonl")]
    paths += sorted((folder / f"memories-{span}").glob("*.md"))
    for path in paths:
        content = path.read_bytes() if path.is_file() else b""
        total.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return total.hexdigest()


_LIVES_1 = {
    "backend-eng-saas": "89d63c629c18d941de5a0973582d4861b117439f3207275faf8d7a37b46bba7b",
    "er-physician": "6766aef58fd08ea6efda322b239c959aa826472463c420820884dab536dc1e2a",
    "litigation-attorney": "77ff3085de25d575e141e1f1fb9e6a0274256b4eda8b8ae27bae0da1f94dcde7",
    "research-scientist": "d1fa2118e1acb316e6f85f966af2bd171da7942e819cb92f1e40ec968bc6d185",
    "financial-advisor": "acb9c3613435dee967b675049ff5ca1906cfcde3ffb83ac9971af9fa70bd1dc3",
    "executive-assistant": "f34ec0156719c4edf9a7bf5d985629bf2d1af01a6083d905b6242801e969da21",
}
SETS: Mapping[str, FrozenSet] = {
    "mnemoscope-lives-1": FrozenSet(
        "mnemoscope-lives-1",
        edition=2,
        days=1000,
        seed=1,
        density=1000,
        sha256=_LIVES_1,
    )
}
