"""The MCP connector: a memory server with MCP tools, driven by a mapping of its tools.

`mcp:COMMAND` starts a server and speaks over its stdin and stdout; `mcp:http://host:port/mcp` uses
one that runs. A mapping file (docs/mcp.md) says what its tools are called and where its replies
keep our ids; `propose` drafts one from what a server says of its tools.
"""

from mnemoscope.connectors.mcp.mcp_connector import Mcp

__all__ = ["Mcp"]
