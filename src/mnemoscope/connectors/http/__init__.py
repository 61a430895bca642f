"""The HTTP connector: a server that implements our contract, or a REST API with a mapping file.

`http:http://localhost:8000` and `http:http://localhost:2026,mapping=nexus`; docs/http.md is for
authors of servers.
"""

from mnemoscope.connectors.http.http_connector import Http

__all__ = ["Http"]
