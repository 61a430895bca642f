"""The built-in bm25 as a third party would hand it in, so that it runs in a host process."""

from mnemoscope.systems.builtin.bm25 import Bm25


class Bm25Copy(Bm25):
    """The same code under another name."""
