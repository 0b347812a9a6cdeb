"""The operators of PyTorch's own op_db on DTensors, as its test_dtensor_ops.py runs them: all even shardings of each sample's arguments."""

from results import show

import warnings
import zlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.distributed._tensor.common_dtensor import DTensorConverter
from torch.utils._pytree import tree_leaves

warnings.simplefilter("ignore")
mesh = init_device_mesh("cpu", (2,))
_SHARDINGS = 4  # of each sample
_SAMPLES = 3  # of each operator


def ran(operator, sample):
    """Run *operator* on the shardings of *sample*; return a checksum of each whole result, or the class of its error."""
    found = []
    converter = DTensorConverter(mesh, (sample.input, *sample.args), sample.kwargs)
    for _, (arguments, named) in zip(range(_SHARDINGS), converter, strict=False):
        if not converter.successful():
            continue
        torch.manual_seed(1)
        try:
            leaves = tree_leaves(operator(*arguments, **named))
            whole = [one.full_tensor() if isinstance(one, DTensor) else one for one in leaves]
            found.append(zlib.crc32(repr([one.tolist() if hasattr(one, "tolist") else one for one in whole]).encode()))
        except Exception as error:
            found.append(type(error).__name__)
    return found


names = "add mul sub div sum mean amax amin argmax cumsum softmax log_softmax matmul mm bmm addmm baddbmm einsum cat stack split chunk"
names += " transpose permute view reshape expand repeat index_select gather scatter topk sort where clamp exp log sqrt pow norm var std"
names += " unbind squeeze unsqueeze flip roll tril triu masked_fill nn.functional.gelu nn.functional.layer_norm"
names += " nn.functional.embedding nn.functional.cross_entropy nn.functional.linear nn.functional.scaled_dot_product_attention"
wanted = set(names.split())
for operator in op_db:
    if operator.name in wanted and torch.float32 in operator.dtypes and not operator.variant_test_name:
        torch.manual_seed(0)
        samples = operator.sample_inputs("cpu", torch.float32)
        show(operator.name, [ran(operator, sample) for _, sample in zip(range(_SAMPLES), samples, strict=False)])
dist.destroy_process_group()
