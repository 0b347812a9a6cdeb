"""What the ranks of a training job share. The classes that are layers of paddle's networks are made when somebody asks for them, as paddle is imported then."""

from __future__ import annotations

import importlib
from typing import Any

from shim.frontends import _absent


def layer_class(module: str, name: str) -> Any:
    """Return the layer *name* for *module*, which has no other name that is made when it is asked for."""
    if name != "DataParallel":
        _absent.refuse_name(module, name)
    importlib.import_module("paddle")
    return importlib.import_module("shim.frontends._paddle.training.data_parallel").DataParallel
