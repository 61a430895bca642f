"""Find, download, verify and stream dataset files."""
