"""Connectors to systems that run elsewhere: stdio, HTTP, gRPC, MCP."""
