"""The search that says which files are worth parsing: it may find too much, and misses nothing."""

from __future__ import annotations

import pytest

from shim import record
from shim.port.apis import APIS
from shim.port.files.mentions import mentions_api, mentions_launcher

MODULES = [
    (signatures.framework, module)
    for name in record.FRONTENDS.values()
    for signatures in [record.read(name)]
    for module in signatures.modules
]


@pytest.mark.parametrize(("framework", "module"), sorted(set(MODULES)))
@pytest.mark.parametrize(
    "form", ["import {module} as x", "import shim.frontends.{module} as x", "from {parent} import {last} as x"]
)
def test_a_file_that_imports_a_recorded_module_is_found(framework: str, module: str, form: str) -> None:
    parent, _, last = module.rpartition(".")
    if not parent:
        return
    line = form.format(module=module, parent=parent, last=last)
    if module in ("mindspore.ops", "mindspore.ops.operations"):
        line += "\nx.AllReduce()"
    assert mentions_api(line.encode(), framework)


@pytest.mark.parametrize(
    "name", ["AllReduce", "Reduce", "Send", "ReduceOp", "all_reduce", "broadcast", "isend", "NeighborExchange"]
)
def test_a_file_that_uses_a_communication_primitive_is_found(name: str) -> None:
    assert mentions_api(f"import mindspore as ms\nms.ops.{name}(x)".encode(), "mindspore")
    assert not mentions_api(f"import mindspore as ms\nms.ops.{name}s(x)".encode(), "mindspore")


@pytest.mark.parametrize(
    ("framework", "name"),
    sorted({(api.framework, name) for api in APIS.values() for name in (api.main, *api.others, *api.names)}),
)
def test_a_file_that_has_a_name_of_the_api_is_found(framework: str, name: str) -> None:
    module, _, last = name.rpartition(".")
    for code in (
        f"import {framework}\n{name}(x)",
        f"from {module} import {last}\n{last}(x)",
        f"from {module} import (\n    {last} as x,\n)",
    ):
        assert mentions_api(code.encode(), framework), code


LICENCE = b"# software distributed under the License is distributed on an AS IS BASIS\nimport %s as x\nx.add(1)\n"


@pytest.mark.parametrize(
    ("content", "framework", "found"),
    [
        (b"import torch as t\nt.distributed.barrier()", "torch", True),
        (b"from torch import (\n  cuda, # x\n  distributed,\n)", "torch", True),
        (b"from torch import distributed as d", "torch", True),
        (b"from torch import distributed", "torch", True),
        (b"from torch import cuda, distributed  # and more", "torch", True),
        (b"from torch import distributed; import os", "torch", True),
        (b"from torch import cuda, \\\n    distributed\\\n as d", "torch", True),
        (b"from torch import *\ndistributed.barrier()", "torch", True),
        (b"import torch\ntorch. \\\n  distributed.barrier()", "torch", True),
        (b"import torch\ntorch.ops._c10d_functional.all_reduce", "torch", True),
        (b"from mindspore import communication as c", "mindspore", True),
        (b"import mindspore\nmindspore.communication.init()", "mindspore", True),
        (b"import mindspore\nprint('communication is slow')", "mindspore", False),
        (b"import torch\n# for distributed training and distributed data", "torch", False),
        (b"import torch\ngetattr(torch, 'distributed')", "torch", True),
        (b"import torch\nm = torch.nn.parallel.DistributedDataParallel(m)", "torch", True),
        (b"import paddle\nm = paddle.DataParallel(m)", "paddle", True),
        (b"import shim.frontends.paddle_2.distributed as dist", "paddle", True),
        (b"import torch\ntorch.add(a, b)", "torch", False),
        (b"import torchvision.distributed", "torch", False),
        (b"import torch.distributed", "paddle", False),
        (LICENCE % b"torch", "torch", False),
        (LICENCE % b"paddle", "paddle", False),
        (LICENCE % b"mindspore", "mindspore", False),
    ],
)
def test_the_api_of_a_framework_is_told_from_other_code(content: bytes, framework: str, found: bool) -> None:
    assert mentions_api(content, framework) is found


@pytest.mark.parametrize(
    ("content", "framework", "found"),
    [
        (b"torchrun --x", "torch", True),
        (b"python -m torch.distributed.launch", "torch", True),
        (b"python -m paddle.distributed.launch", "paddle", True),
        (b"msrun --x", "mindspore", True),
        (b"torchrun --x", "mindspore", False),
        (b'["shim", "run", "-n"]', "torch", True),
        (b"mpirun -n 2", "mindspore", True),
        (b"run the shim", "torch", False),
    ],
)
def test_launchers_are_found(content: bytes, framework: str, found: bool) -> None:
    assert mentions_launcher(content, framework) is found
