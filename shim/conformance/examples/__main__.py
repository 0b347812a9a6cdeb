"""``python -m shim.conformance.examples FRAMEWORK``: print the docstrings of the installed framework as JSON, on the last line."""

from __future__ import annotations

import json
import sys

from shim.conformance.examples.docstrings import docstrings_of

if __name__ == "__main__":
    sys.stdout.write(json.dumps(docstrings_of(sys.argv[1])) + "\n")
