"""Key-value stores through which processes meet before they have a process group, and tell each other small things.

Keys are text, values are bytes, times are seconds. A store may be used from several threads at once.
"""

from __future__ import annotations

from shim.core.stores.base import DEFAULT_TIMEOUT, Store
from shim.core.stores.file import FileStore
from shim.core.stores.in_process import HashStore
from shim.core.stores.local import LocalStore
from shim.core.stores.prefix import PrefixStore
from shim.core.stores.tcp import TCPStore

__all__ = ["DEFAULT_TIMEOUT", "FileStore", "HashStore", "LocalStore", "PrefixStore", "Store", "TCPStore"]
