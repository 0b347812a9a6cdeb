"""Starting processes with ``spawn``."""
