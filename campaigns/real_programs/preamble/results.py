"""What each program imports first: a fixed start, and ``show``, which prints a result and keeps it for the comparison.

Some libraries import torchvision, which needs help here, so that this has to come before them. It lies in a folder of its own because the programs run in an environment that does not have ``checks``.
"""

import atexit
import importlib.util
import json
import os
import random
import zlib

import numpy
import torch
import torch.distributed as dist

RANK = int(os.environ.get("RANK") or os.environ.get("SHIM_RANK") or 0)
WORLD_SIZE = int(os.environ.get("WORLD_SIZE") or os.environ.get("SHIM_WORLD_SIZE") or 1)

torch.set_num_threads(1)  # with more, sums depend on how threads divide them
random.seed(0)
numpy.random.seed(0)
torch.manual_seed(0)

_folder = os.environ.get("REAL_PROGRAMS_RESULTS")
_original_destroy = dist.destroy_process_group
_shown = set()


def show(name, value):
    """Print *value*, a tensor, a module, a number, a string or a list or dict of such, as this rank's result *name*."""
    note_groups()
    plain, bits = _plain(value), zlib.crc32(repr(_exact(value)).encode())
    print(f"rank {RANK}: {name} = {plain}", flush=True)
    _keep({"name": name, "value": plain, "bits": bits})


def note_groups():
    """Keep the classes of the process groups that there are: of a backend, where torch's own group stands before one."""
    for group in _groups():
        kind = type(group)
        if kind is getattr(torch._C._distributed_c10d, "ProcessGroup", None):
            kind = type(group._get_backend(torch.device("cpu")))
        kind = f"{kind.__module__}.{kind.__qualname__}"
        if kind not in _shown:
            _shown.add(kind)
            _keep({"group": kind})


def _groups():
    if not dist.is_initialized():
        return []
    try:
        from torch.distributed.distributed_c10d import _world
    except ImportError:  # a frontend in the place of torch.distributed
        return [dist.group.WORLD]
    return [*(_world.pg_map or [dist.group.WORLD])]


def _destroy(*arguments, **named):
    note_groups()
    return _original_destroy(*arguments, **named)


def _keep(entry):
    if _folder:
        with open(os.path.join(_folder, f"rank{RANK}"), "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _plain(value):
    """Return *value* as JSON has it, a tensor of more than 8 elements as its size, sum and norm."""
    if isinstance(value, torch.nn.Module):
        return _plain(value.state_dict())
    if isinstance(value, torch.Tensor):
        value = value.detach().double() if value.is_floating_point() else value.detach()
        if value.numel() > 8:
            value = value.double()
            return {"elements": value.numel(), "sum": value.sum().item(), "norm": value.norm().item()}
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return _plain(torch.as_tensor(value))
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _exact(value):
    """Return *value* with all that is in it."""
    if isinstance(value, torch.nn.Module):
        return _exact(value.state_dict())
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.detach().contiguous().flatten().view(-1).tolist()
    if isinstance(value, dict):
        return {str(key): _exact(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_exact(one) for one in value]
    return _plain(value)


if importlib.util.find_spec("torchvision"):
    # Its wheel on the package index is for CUDA: without the operators of its C++ library, its Python cannot be imported.
    _torchvision = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _torchvision.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
dist.destroy_process_group = _destroy
atexit.register(note_groups)
