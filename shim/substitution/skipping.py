"""What stands in for names of ``pytest`` in a program whose imports get views."""

from __future__ import annotations

from typing import Any

import pytest

from shim.substitution.views import view_of

__all__ = ["importorskip"]


def importorskip(*arguments: Any, **keywords: Any) -> Any:
    """Import as ``pytest.importorskip`` does, and return the view of a framework's module."""
    return view_of(pytest.importorskip(*arguments, **keywords))
