"""The HTTP door: a server that speaks our contract, or any REST API that a mapping file describes.

`http:http://localhost:8000` and `http:http://localhost:2026,mapping=nexus`; docs/http.md is for
those who stand on the other side.
"""

from mnemoscope.connectors.http.http_connector import Http

__all__ = ["Http"]
