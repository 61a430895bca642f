"""`python -m mnemoscope`: the command, where its script is not on the path."""

from mnemoscope.cli import main

main()
