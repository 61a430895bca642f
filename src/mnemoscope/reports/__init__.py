"""Views of run directories: tables for the terminal, Markdown. They compute nothing new."""
