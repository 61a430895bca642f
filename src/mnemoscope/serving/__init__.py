"""Servers that offer a system to others: HTTP, gRPC."""
