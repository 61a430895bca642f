"""`mnemoscope erasure`: let a system forget memories, and search its files for their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnemoscope import api
from mnemoscope.cli.console import out, print_json, say


def erasure(
    *,
    system: Annotated[str, Parameter(name=["--system", "-s"])],
    command: str = "",
    memories: int = 40,
    batch: int = 5,
    also: tuple[Path, ...] = (),
    timeout: float = 60.0,
    start: float = 60.0,
    seed: int = 42,
    folder: Annotated[Path, Parameter(name="--out")] = Path("runs/erasure"),
    json: bool = False,
) -> int:
    """Let a system forget memories, and search the bytes of its files for their texts.

    The system is started here on a new, empty folder, which replaces `{storage}` in the system or
    in --command. It remembers memories with rare words and forgets half of them. Its files are
    searched after that, and once more after it has ended. The exit code is 0 only if no forgotten
    text is found, and the texts that it keeps are visible to the same search.

    For example:

        mnemoscope erasure --system sqlite-vec

        mnemoscope erasure --system "my_package.memory:Store,path={storage}"

        mnemoscope erasure --system "stdio:python adapter.py --data {storage}"

        mnemoscope erasure --system http:http://127.0.0.1:8080 \\
            --command "my-server --port 8080 --data {storage}"

    Parameters
    ----------
    system
        A system: an integration, `module:Name`, `stdio:COMMAND`, or the loopback address of a
        server that --command starts.
    command
        The command that starts the server.
    memories
        Memories that are written; half of them are forgotten.
    batch
        Memories of one write.
    also
        A further folder in which the system keeps files; it may be repeated.
    timeout
        Seconds that a call may take.
    start
        Seconds in which the server must listen.
    seed
        Decides the texts of the memories.
    folder
        The folder for erasure.md and erasure.json, and for the storage if texts are found in it.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.durability.erasure_report import blocks
    from mnemoscope.reports import render_terminal

    result = api.erasure_test(
        system,
        command=command,
        memories=memories,
        batch=batch,
        also=also,
        timeout=timeout,
        start=start,
        seed=seed,
        out=folder,
    )
    if json:
        print_json(result)
    else:
        out.print(render_terminal.render(blocks(result)))
        say(out, f"the table: {folder}/erasure.md")
    return int(not result.passed)
