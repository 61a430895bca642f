"""Chat models, one module a provider."""
