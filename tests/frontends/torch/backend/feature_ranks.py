"""What a rank does of ``parallel_features``: by which way it comes to them, and in which world."""

from __future__ import annotations

import importlib
import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shim.substitution.own_modules import substitute_below

# Features in which four ranks do what two cannot. The others have two only: on four, dtensor hangs at an empty shard, on gloo too.
OF_FOUR = (
    *("ddp_in_a_group", "hierarchical_model_averager", "fsdp2_with_tensor_parallel", "hybrid_shard", "device_mesh"),
    *("pipeline_1f1b", "collectives", "messages", "groups", "objects"),
)


def run_features(way: str, port: int, names: Sequence[str]) -> dict[str, Any]:
    """Return what each of the features *names* (none: of all) gives in a world that meets at *port*."""
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
    found: dict[str, Any] = features.run_all("shim" if way == "shim" else "gloo", names)
    return found
