"""The former path of `mnemoscope.connectors.serve_stdio`; adapters may keep importing from here."""

import sys

from mnemoscope.connectors.serve_stdio import Memory, Query, Selector, main, serve

__all__ = ["Memory", "Query", "Selector", "main", "serve"]

if __name__ == "__main__":
    main(sys.argv[1:])
