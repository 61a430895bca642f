"""Finding, downloading, pinning and streaming dataset files."""
