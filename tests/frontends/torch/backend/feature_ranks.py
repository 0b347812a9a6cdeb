"""What a rank does of ``parallel_features``: by which way it comes to them, and in which world."""

from __future__ import annotations

import importlib
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

from shim.substitution.own_modules import substitute_below

__all__ = ["run_features"]


def run_features(way: str, port: int) -> dict[str, Any]:
    """Return what each of the features gives in a world that meets at *port*."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    warnings.simplefilter("ignore")  # of what torch deprecates
    tempfile.tempdir = None
    if way == "as installed":
        substitute_below(Path(__file__).parent)
    elif way == "SHIM_TORCH_BACKEND=1":
        os.environ["SHIM_TORCH_BACKEND"] = "1"
        from shim.frontends.torch._backend.registration import register

        register()  # as torch itself does when it is imported, which it has been
    features = importlib.import_module("parallel_features")
    found: dict[str, Any] = features.run_all("shim" if way == "shim" else "gloo")
    return found
