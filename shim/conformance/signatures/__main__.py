"""``python -m shim.conformance.signatures torch-2.13.0``: compare the installed framework with what is recorded of it.

In a process of its own, where no other framework gets in the way. The last line says ``as recorded``, or what differs.
"""

from __future__ import annotations

import sys

from shim.conformance.signatures.comparison import compare_installed

if __name__ == "__main__":
    _found = compare_installed(sys.argv[1])
    sys.stdout.write("\n".join(_found) or "as recorded")
    sys.exit(bool(_found))
