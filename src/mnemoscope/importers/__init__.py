"""Importers: read notes, chat exports and memory stores, and write them as a dataset folder.

One module reads one kind of source and yields `SourceRecord`s. `kinds` detects the kind of a
source. Nothing here changes a source, and nothing uses the network.
"""
