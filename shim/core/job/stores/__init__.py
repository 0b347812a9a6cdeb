"""Key-value stores through which processes meet before they have a process group, and tell each other small things.

Keys are text, values are bytes, times are seconds. A store may be used from several threads at once.
"""

from __future__ import annotations

from shim.core.job.stores.base import DEFAULT_TIMEOUT, PrefixStore, Store
from shim.core.job.stores.file import FileStore
from shim.core.job.stores.local import HashStore, LocalStore
from shim.core.job.stores.tcp import TCPStore

__all__ = ["DEFAULT_TIMEOUT", "FileStore", "HashStore", "LocalStore", "PrefixStore", "Store", "TCPStore"]
