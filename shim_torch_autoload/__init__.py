"""What torch calls whenever it is imported, as the entry point ``torch.backends`` says.

It stands outside ``shim``: where a program has a module of that name itself, torch's import goes on without the backend.
"""

from __future__ import annotations


def register() -> None:
    """Register the backend ``"shim"`` with torch."""
    try:
        from shim.frontends.torch._backend.registration import register as register_backend
    except ImportError:
        return
    register_backend()
