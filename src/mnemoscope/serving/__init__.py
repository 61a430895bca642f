"""Servers that offer a system to clients, over HTTP and gRPC."""
