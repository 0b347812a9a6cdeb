"""``python -m shim`` is ``shim``."""

from shim.cli import main

main()
