"""`mnemoscope durability`: kill a system, start it again, and count what is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnemoscope import api
from mnemoscope.cli.console import err, out, print_json, progress_bar, say


def durability(
    *,
    system: Annotated[str, Parameter(name=["--system", "-s"])],
    command: str = "",
    kills: int = 5,
    memories: int = 50,
    batch: int = 5,
    settle: float = 1.0,
    timeout: float = 60.0,
    start: float = 60.0,
    seed: int = 42,
    folder: Annotated[Path, Parameter(name="--out")] = Path("runs/durability"),
    json: bool = False,
) -> int:
    """Kill a system after and during writes, start it again, and count which memories are gone.

    The system is started here and killed with SIGKILL; no other process is touched. `{storage}` in
    the system or in --command is replaced by a new, empty folder for each round. The exit code is 1
    if an acknowledged memory is gone, a forgotten one came back, or the system did not start again.
    A system that keeps nothing on disk is not durable by design, which is not a failure.

    For example:

        mnemoscope durability --system sqlite-vec

        mnemoscope durability --system "my_package.memory:Store,path={storage}"

        mnemoscope durability --system "stdio:python adapter.py --data {storage}"

        mnemoscope durability --system http:http://127.0.0.1:8080 \\
            --command "my-server --port 8080 --data {storage}"

    Parameters
    ----------
    system
        A system: an integration, `module:Name`, `stdio:COMMAND`, or the loopback address of a
        server that --command starts. It must open what its storage contains when it starts.
    command
        The command that starts the server.
    kills
        Kills after acknowledged writes, and as many during writes.
    memories
        Memories of each round.
    batch
        Memories of one write.
    settle
        Seconds after which memories that are missing after a restart are asked for once more.
    timeout
        Seconds that a call may take.
    start
        Seconds in which the server must listen.
    seed
        Decides the texts of the memories, and when the system is killed.
    folder
        The folder for durability.md and durability.json, and for the storage of rounds that lost
        something.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.durability.durability_report import blocks
    from mnemoscope.reports import render_terminal

    with progress_bar(f"durability of {system}", None) as bar:

        def update(kind: str, number: int, total: int) -> None:
            bar.update(
                bar.task_ids[0],
                total=total,
                completed=number - 1,
                count=f"round {number} of {total}",
                refresh=True,
            )

        try:
            result = api.durability_test(
                system,
                command=command,
                kills=kills,
                memories=memories,
                batch=batch,
                settle=settle,
                timeout=timeout,
                start=start,
                seed=seed,
                out=folder,
                progress=update,
            )
        except KeyboardInterrupt:
            say(err, f"\nthe rounds so far are in {folder}/durability.md", lines=True)
            raise
    if json:
        print_json(result)
    else:
        out.print(render_terminal.render(blocks(result)))
        say(out, f"the table: {folder}/durability.md")
    return int(result.verdict == "lost")
