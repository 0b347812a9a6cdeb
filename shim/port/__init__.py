"""Port distributed code from one framework's collective API to another's.

``port_source`` ports one file's text; ``shim port`` does the same for files, folders and notebooks. What is no use of the API stays byte for
byte as it is. What has no equivalent, or cannot be decided from the source, is an ``Entry`` of the report.
"""

from __future__ import annotations

from shim.port.plan import Entry, Plan, Ported
from shim.port.porting import port_source

__all__ = ["Entry", "Plan", "Ported", "port_source"]
