"""All frontends in one process, with the tensors of every framework in turn; every value is checked on every rank.

    shim run -n 3 examples/every_frontend.py
    torchrun --nproc-per-node 3 examples/every_frontend.py

Any launcher does; see docs/launchers.md. Kinds of tensor whose framework is not installed are left out and named;
``--tensors numpy,torch`` asks for kinds, and then an absent one is an error.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

KINDS = ("numpy", "torch", "mindspore", "paddle")  # MindSpore must be imported before Paddle where both are
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool", "complex64")
WITHOUT_BFLOAT16 = ("numpy",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tensors", help="kinds of tensor, separated by commas; the default is what is installed")
    arguments = parser.parse_args()
    kinds = arguments.tensors.split(",") if arguments.tensors else [k for k in KINDS if importlib.util.find_spec(k)]
    modules = {kind: importlib.import_module(kind) for kind in KINDS if kind in kinds}

    import shim.frontends.mindspore.mint.distributed as mint
    import shim.frontends.mindspore.ops as ops
    import shim.frontends.paddle_2.distributed as paddle_2
    import shim.frontends.paddle_3.distributed as paddle_3
    import shim.frontends.torch.distributed as torch_dist
    from shim.frontends.mindspore.communication import init

    torch_dist.init_process_group("gloo")
    paddle_2.init_parallel_env()
    paddle_3.init_parallel_env()
    mint.init_process_group()
    init()
    rank, size = torch_dist.get_rank(), torch_dist.get_world_size()
    assert (rank, size) == (paddle_3.get_rank(), paddle_3.get_world_size()) == (mint.get_rank(), mint.get_world_size())

    checked = 0
    for kind, module in modules.items():
        for dtype in DTYPES:
            if dtype == "bfloat16" and kind in WITHOUT_BFLOAT16:
                continue

            def tensor(values: np.ndarray, module: Any = module, dtype: str = dtype) -> Any:
                return make(module, values, dtype)

            inputs = [values_of(r, size, dtype) for r in range(size)]
            total = sum(inputs[1:], start=inputs[0].copy()) if dtype != "bool" else np.logical_or.reduce(inputs)
            stacked = np.concatenate(inputs)
            exchanged = np.concatenate([x.reshape(size, 2)[rank] for x in inputs])
            mine, blank = inputs[rank], np.zeros_like(inputs[rank])

            for all_reduce in (torch_dist.all_reduce, paddle_2.all_reduce, paddle_3.all_reduce, mint.all_reduce):
                x = tensor(mine)
                all_reduce(x)
                checked += check(f"{all_reduce.__module__}.all_reduce", kind, dtype, rank, x, total)

            for gather in (torch_dist.all_gather_single, mint.all_gather_into_tensor):
                out = tensor(np.zeros_like(stacked))
                gather(out, tensor(mine))
                checked += check(f"{gather.__module__}.{gather.__name__}", kind, dtype, rank, out, stacked)
            checked += check("ops.AllGather", kind, dtype, rank, ops.AllGather()(tensor(mine)), stacked)

            exchanges: dict[str, Callable[[Any, Any], Any]] = {
                "torch all_to_all_single": torch_dist.all_to_all_single,
                "mint all_to_all_single": mint.all_to_all_single,
                "paddle_3 alltoall_single": paddle_3.alltoall_single,
                "paddle_2 alltoall_single": lambda out, x: paddle_2.alltoall_single(x, out),
            }
            for name, exchange in exchanges.items():
                out = tensor(blank)
                exchange(out, tensor(mine))
                checked += check(name, kind, dtype, rank, out, exchanged)
    torch_dist.barrier()
    absent = [kind for kind in KINDS if kind not in modules]
    print(f"rank {rank} of {size}: {checked} results right with tensors of {', '.join(modules)}", end="")
    print(f"; not installed or not asked for: {', '.join(absent)}" if absent else "", flush=True)


def values_of(rank: int, size: int, dtype: str) -> np.ndarray:
    """Return 2 values for each rank, different for every rank and place, whose sums every dtype holds exactly."""
    numbers = np.arange(2 * size) + 3 * rank + 1
    if dtype == "bool":
        return (numbers % 3 == 0).astype(bool)
    if dtype == "complex64":
        return (numbers + 1j * (numbers + rank)).astype(np.complex64)
    return numbers.astype("float32" if dtype == "bfloat16" else dtype)


def make(module: Any, values: np.ndarray, dtype: str) -> Any:
    """Return a tensor of the framework *module* with these *values*."""
    if module.__name__ == "numpy":
        return values.copy()
    if module.__name__ == "torch":
        return module.from_numpy(values.copy()).to(getattr(module, dtype))
    if module.__name__ == "paddle":
        return module.to_tensor(values).astype(dtype)
    return module.Tensor(values).astype(getattr(module, "bool_" if dtype == "bool" else dtype))


def check(what: str, kind: str, dtype: str, rank: int, seen: Any, expected: np.ndarray) -> int:
    """Raise unless *seen*, of any framework, holds *expected*; return 1."""
    if dtype == "bfloat16":
        seen = seen.float() if kind != "paddle" else seen.astype("float32")
    values = seen.asnumpy() if kind == "mindspore" else np.asarray(seen)
    if not np.array_equal(values.reshape(-1), expected):
        raise AssertionError(f"{what} with {kind} {dtype} on rank {rank}: {values} where {expected} was expected")
    return 1


if __name__ == "__main__":
    main()
