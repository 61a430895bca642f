"""The MCP door: any memory server with MCP tools, driven by a mapping of its tools to our verbs.

`mcp:COMMAND` starts a server and speaks over its stdin and stdout, `mcp:http://host:port/mcp` goes
to one that runs. What its tools are called, and where its replies keep our ids, stands in a
mapping file (docs/mcp.md); `propose` drafts one from what a server says of its tools.
"""

from mnemoscope.connectors.mcp.mcp_connector import Mcp

__all__ = ["Mcp"]
