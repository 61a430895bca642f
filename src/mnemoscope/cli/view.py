"""`mnemoscope view`: a local web app over the runs below a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import err, out, say

_LAST_PORT = 65535


def view(
    folder: Path | None = None,
    /,
    *,
    port: int = 0,
    no_open: bool = False,
    data: Path | None = None,
) -> None:
    """Look at many runs in a browser: a list, a table with groups, differences, single questions.

    The server listens on this machine only, reads the runs below one folder and writes nothing.
    Runs in progress are shown live. The browser is opened if this is a terminal.

    For example:

        mnemoscope view

        mnemoscope view runs/locomo --data locomo10.json

        mnemoscope view runs --port 8080 --no-open

    Parameters
    ----------
    folder
        The folder with the runs, at any depth. Default: runs, if it exists, else this folder.
    port
        The port to listen on; 0 takes a free one.
    no_open
        Do not open the browser.
    data
        The dataset's file or folder, to show memories in full; else what report.html has of them.
    """
    from mnemoscope.cli.serve import serve_until_ended
    from mnemoscope.viewer.view_server import ViewServer

    if not 0 <= port <= _LAST_PORT:
        raise UsageError(f"--port {port}: give a number from 0 to {_LAST_PORT}")
    if folder is None:
        folder = Path("runs") if Path("runs").is_dir() else Path()
    if data is not None and not data.exists():
        raise UsageError(f"--data {data}: no such file or folder")
    server = ViewServer(folder, port=port, data=data)
    say(out, f"runs in {folder} (stop with Ctrl-C): {server.url}")
    sys.stdout.flush()
    if not no_open and sys.stdin.isatty() and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(server.url)
    serve_until_ended(server.serve_forever, server.close, err)
