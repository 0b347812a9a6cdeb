"""``python -m shim`` is ``shim``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process, and exit; if it is interrupted while it still imports, without a traceback."""
    try:
        from shim.cli import main as run_command_line  # here: it takes longer than all that is before

        run_command_line()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
