"""One engine behind the collective-communication APIs of PyTorch, PaddlePaddle and MindSpore.

Put ``shim.frontends.`` in front of a framework's import path and its code runs on this engine.
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
