"""One engine behind the collective-communication APIs of PyTorch, PaddlePaddle and MindSpore.

Put ``shim.frontends.`` in front of a framework's import path and its code runs on this engine.
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__", "explain"]


def explain() -> str:
    """Tell which engine serves each group this process knows, and why; one line for each group."""
    from shim.core import groups  # the engine is loaded by those who use it, not by `shim --help`

    return "\n".join(groups.explanations()) or "The world is not initialised: no engine is in use."
