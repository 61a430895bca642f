"""The MCP connector: a memory server with MCP tools, called as a mapping file says.

`mcp:COMMAND` starts a server and uses its stdin and stdout; `mcp:http://host:port/mcp` uses a
running server. A mapping file (docs/mcp.md) names the tools and says where their replies have our
ids; `propose` drafts one from the server's descriptions of its tools.
"""
