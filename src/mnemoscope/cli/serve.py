"""`mnemoscope serve`: what others can ask of Mnemoscope, over a port."""

from __future__ import annotations

from cyclopts import App

from mnemoscope.cli.serve_embeddings import serve_embeddings
from mnemoscope.cli.serve_grpc import serve_grpc
from mnemoscope.cli.serve_http import serve_http

app = App(name="serve", help="Put a memory system, or an embedding model, behind a port.")
app.command(serve_embeddings, name="embeddings")
app.command(serve_grpc, name="grpc")
app.command(serve_http, name="http")
