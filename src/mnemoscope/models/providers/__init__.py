"""Providers of chat models."""
