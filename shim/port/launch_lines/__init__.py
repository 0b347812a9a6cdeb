"""Port launch lines: ``torchrun --nproc_per_node 2 train.py`` becomes ``shim run -n 2 train.py``, or what the target's own launcher takes.

``commands`` finds them in texts, ``argument_lists`` in lists, ``python_strings`` in Python. ``options`` reads them into a ``Launch``, which
``launchers`` writes again.
"""

from __future__ import annotations

from shim.port.launch_lines.edits import Launched
from shim.port.launch_lines.python_strings import port_launch_lines_in_python
from shim.port.launch_lines.texts import port_launch_lines

__all__ = ["Launched", "port_launch_lines", "port_launch_lines_in_python"]
