"""The rules of a report's entries: what each means, code that gets such an entry, and code to write in its place.

``RULES`` has each by the name that entries, ``--select`` and ``--ignore``, SARIF and the pages use. Tests port both examples.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class EntryRule(NamedTuple):
    """``before`` gets an entry of this rule on the way from ``source`` to ``target``, and ``after`` gets none.

    ``code`` says what they are: ``program`` uses the collective API, ``native`` does so on the way onto the framework itself, ``tensors`` uses
    tensors' functions too, ``launch`` is a launch line. A rule about a whole file or cell has no example.
    """

    meaning: str
    source: str = ""
    target: str = ""
    before: str = ""
    after: str = ""
    code: Literal["program", "native", "tensors", "launch"] = "program"


RULES = {
    "any-source": EntryRule("the call takes a message of any rank", "torch", "paddle_3", "dist.recv(t)", "dist.recv(t, src=1)"),
    "argument-by-default": EntryRule("the call leaves out an argument, by whose default the function does more than the target's", "paddle_3", "torch", "y = paddle.take_along_axis(x, i, 0)", "y = paddle.take_along_axis(x, i, 0, broadcast=False)", "tensors"),
    "argument-without-effect": EntryRule("an argument was dropped; the call succeeds with the same results without it", "torch", "paddle_3", 'dist.init_process_group("nccl", world_size=2)', "dist.init_process_group()"),
    "autograd-class": EntryRule("a class of autograd has parts that the target has in another form", "torch", "paddle_3", "class Sum(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, *tensors):\n        dist.all_reduce(tensors[0])\n        return tensors[0]\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad", "class Sum(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        dist.all_reduce(x)\n        return x\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad", "tensors"),
    "axis-or-tensor": EntryRule("a function does other things with a tensor than with a number, and the source does not show which it gets", "torch", "paddle_3", "y = torch.max(x, n)", "y = torch.max(x, dim=n)", "tensors"),
    "backend-name": EntryRule("a backend's name is passed or compared, and the frameworks have different ones, or ones for another kind of device", "torch", "mindspore", 'if dist.get_backend() == "nccl":\n    t = t.cuda()', "if use_cuda:\n    t = t.cuda()"),
    "before-init": EntryRule("Paddle and MindSpore tell the rank and the size of the world before the program initialises, and torch raises an error", "paddle_3", "torch", "def log(text):\n    if dist.get_rank() == 0:\n        print(text)", "def log(text):\n    if dist.is_initialized() and dist.get_rank() == 0:\n        print(text)"),
    "cell-not-python": EntryRule("a notebook's cell is not Python 3, so it was not read"),
    "chunk-must-be-even": EntryRule("Paddle's `chunk` raises an error where others have a shorter last part", "torch", "paddle_3", "parts = x.chunk(3)", "parts = x.split([2, 1, 1])", "tensors"),
    "communicates-itself": EntryRule("a class such as DistributedDataParallel uses its own framework's groups", "torch", "paddle_3", "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)\nloss.backward()", "loss.backward()\nfor parameter in model.parameters():\n    dist.all_reduce(parameter.grad)\n    parameter.grad /= dist.get_world_size()"),
    "computed-twice": EntryRule("the target needs two calls in place of one, and what they get would be computed twice", "torch", "paddle_3", "y = torch.sort(x + 1)[0]", "y = x + 1\nz = torch.sort(y)[0]", "tensors"),
    "contiguous-in-place": EntryRule("`contiguous` changes the tensor itself in Paddle, and makes a copy on the target", "paddle_3", "torch", "y = x.contiguous()", "y = x.clone()", "tensors"),
    "cross-entropy": EntryRule("Paddle's `cross_entropy` takes the last dimension for that of the classes, and counts labels of -100 in its mean", "torch", "paddle_3", "loss = torch.nn.functional.cross_entropy(x, labels)", "loss = torch.mean(torch.logsumexp(x, -1) - torch.sum(x * chosen, -1))", "tensors"),
    "device-not-given": EntryRule("the target's function has no device: the tensor is made on the current one", "torch", "mindspore", 'y = torch.zeros(2, device="cpu")', "y = torch.zeros(2)", "tensors"),
    "dtype-as-string": EntryRule("a dtype is, or may be, a string, which Paddle takes and others do not", "paddle_3", "torch", "y = paddle.zeros([2], dtype=name)", "y = paddle.zeros([2], dtype=paddle.float32)", "tensors"),
    "dtype-not-given": EntryRule("the frameworks choose different dtypes, and the source does not show which is meant", "torch", "mindspore", "y = torch.full((2,), n.value)", "y = torch.full((2,), n.value, dtype=torch.int64)", "tensors"),
    "dtype-of-integers": EntryRule("a framework keeps the dtype of small integers where others have int64", "torch", "mindspore", "y = torch.cumsum(x, 0)", "y = torch.cumsum(x, 0, dtype=torch.int64)", "tensors"),
    "dtype-or-device": EntryRule("`to` takes both, and the source does not show which it gets", "torch", "paddle_3", "y = x.to(kind)", "y = x.to(torch.float64)", "tensors"),
    "empty-list": EntryRule("Paddle appends to an empty list that others fill, and the source does not show what the list holds", "paddle_3", "torch", "parts = []\nobject.fill(parts)\ndist.all_gather(parts, t)", "dist.all_gather([paddle.empty_like(t) for _ in range(2)], t)"),
    "for-model-converter": EntryRule("a function uses the framework's tensors and calls no collective, so it stays", "torch", "paddle_3", "def loss_of(y):\n    return torch.mean(y)", "def loss_of(y):\n    return paddle.mean(y)", "tensors"),
    "function-as-value": EntryRule("a function is passed on, and the target's has its parameters in another order", "torch", "paddle_3", "exchange = later(dist.all_to_all_single)", "def exchange_all(out, x):\n    dist.all_to_all_single(out, x)\n\n\nexchange = later(exchange_all)"),
    "gradient-of-input": EntryRule("an input was taken for one that is no tensor, and has no gradient in Paddle", "torch", "paddle_3", "class Sum(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, other):\n        dist.all_reduce(x)\n        return x\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad, None", "class Sum(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, other: int):\n        dist.all_reduce(x)\n        return x\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad, None", "tensors"),
    "group-by-name": EntryRule("a group is given by its name, and the target's groups are objects", "mindspore", "torch", 'rank = dist.get_rank("pairs")', "pairs = dist.new_group([0, 1])\nrank = dist.get_rank(pairs)"),
    "group-member": EntryRule("a group has no such method or property on the target", "torch", "paddle_3", "group = dist.new_group([0, 1])\ngroup.bound_device_id", "group = dist.new_group([0, 1])"),
    "group-not-given": EntryRule("the function asks about a group that is not its first argument", "torch", "paddle_3", "rank = dist.get_group_rank(global_rank=r, group=find())", "rank = dist.get_group_rank(find(), r)"),
    "group-of-others": EntryRule("a rank asks a group that it is not in for its ranks or its size, which Paddle and MindSpore's `get_group_size` allow", "paddle_3", "torch", "group = dist.new_group([0])\nis_member = dist.get_rank() in group.ranks", "ranks = [0]\ngroup = dist.new_group(ranks)\nis_member = dist.get_rank() in ranks"),
    "group-rank": EntryRule("a rank in a group has to become one in the world, and the group is no simple expression", "torch", "paddle_3", "dist.broadcast(t, group=groups.pop(), group_src=0)", "group = groups.pop()\ndist.broadcast(t, group=group, group_src=0)"),
    "groups-of-same-ranks": EntryRule("in MindSpore, groups with the same ranks are one group, and destroying one destroys all", "torch", "mindspore", "pairs, others = dist.new_group([0, 1]), dist.new_group([0, 1])\ndist.destroy_process_group(pairs)", "pairs, others = dist.new_group([0, 1]), dist.new_group([0, 1])\ndist.destroy_process_group()"),
    "handle-member": EntryRule("handles of the target have no such method", "torch", "mindspore", "work = dist.isend(t, 1)\nwhile not work.is_completed():\n    step()", "work = dist.isend(t, 1)\nstep()\nwork.wait()"),
    "index-dtype": EntryRule("indices or counts have another dtype in MindSpore", "torch", "mindspore", "values, indices = torch.topk(x, 2)", "indices = torch.argsort(x, descending=True)", "tensors"),
    "launch-devices": EntryRule("the launcher chose the ranks' devices, and the target's does not", "paddle_3", "torch", "python -m paddle.distributed.launch --devices 2,3 train.py", "python -m paddle.distributed.launch --nproc_per_node 2 train.py", "launch"),
    "launch-incomplete": EntryRule("the command goes on where the port cannot read it", "torch", "mindspore", "torchrun --nproc_per_node 2", "torchrun --nproc_per_node 2 train.py", "launch"),
    "launch-local-rank": EntryRule("the launcher gave the program `--local_rank`, and the target's does not", "torch", "mindspore", "python -m torch.distributed.launch --nproc_per_node 2 train.py", "python -m torch.distributed.launch --use-env --nproc_per_node 2 train.py", "launch"),
    "launch-log-folder": EntryRule("the launcher wrote log files, which have other names on the target", "torch", "mindspore", "torchrun --nproc_per_node 2 --log-dir logs train.py", "torchrun --nproc_per_node 2 train.py", "launch"),
    "launch-nodes": EntryRule("the line starts ranks on several hosts, each with a command of its own", "torch", "mindspore", "torchrun --nnodes 2 --nproc_per_node 2 train.py", "torchrun --nproc_per_node 2 train.py", "launch"),
    "launch-option": EntryRule("an option has no equivalent", "torch", "mindspore", "torchrun --nproc_per_node 2 --start-method fork train.py", "torchrun --nproc_per_node 2 train.py", "launch"),
    "launch-port": EntryRule("the port at which ranks meet was left out: the launcher chooses one", "torch", "mindspore", "torchrun --nproc_per_node 2 --master_port 29500 train.py", "torchrun --nproc_per_node 2 train.py", "launch"),
    "launch-ranks": EntryRule("the line does not say how many ranks there are", "torch", "mindspore", "torchrun --nproc_per_node auto train.py", "torchrun --nproc_per_node 2 train.py", "launch"),
    "launcher-variable": EntryRule("with `--onto native`: the program reads or sets a variable of its launcher, which the target's does not know", "torch", "mindspore", 'import os\nrank = int(os.environ["LOCAL_RANK"])', "rank = dist.get_rank()", "native"),
    "list-may-be-empty": EntryRule("Paddle appends to an empty list that others fill, and the source does not show what the list holds", "paddle_3", "torch", "dist.all_gather(self.parts, t)", "parts = [paddle.empty_like(t) for _ in range(2)]\ndist.all_gather(parts, t)"),
    "may-be-group": EntryRule("what is named like a group, and may be one, is asked for what only the source's groups tell", "torch", "paddle_3", "n = self.group.size()", "n = dist.get_world_size(self.group)"),
    "may-be-tensor": EntryRule("a method or an operator such as `/=` may be one of a tensor, and the target's differs; also an operator in a function that stays, on what a ported function passes to it", "torch", "paddle_3", "def mean(y, n):\n    dist.all_reduce(x)\n    y /= n", "def mean(y: torch.Tensor, n):\n    dist.all_reduce(x)\n    y /= n", "tensors"),
    "missing-ranks": EntryRule("a barrier named the ranks that have not come, and the target's does not", "torch", "mindspore", "dist.monitored_barrier()", "dist.barrier()", "native"),
    "module-as-value": EntryRule("a module of the API is kept or passed on, and what is called through it is not found", "torch", "paddle_3", "share = share_of(dist)", "share = share_of(dist.get_rank(), dist.get_world_size())"),
    "name-at-run-time": EntryRule("`getattr` and its like ask for a name that the source does not show, or a string names something of the API", "torch", "paddle_3", "function = getattr(dist, name)", 'function = {"rank": dist.get_rank, "size": dist.get_world_size}[name]'),
    "needs-a-statement": EntryRule("the target needs a statement before a call that is part of a larger one", "torch", "paddle_3", "done = show(dist.all_gather_object(found, thing))", "done = dist.all_gather_object(found, thing)"),
    "no-equivalent": EntryRule("the target has no such function or name", "torch", "paddle_3", "dist.gather_object(thing, found)", "everything = [None] * dist.get_world_size()\ndist.all_gather_object(everything, thing)"),
    "no-equivalent-argument": EntryRule("the target's function has no such parameter", "torch", "paddle_3", "dist.send(t, 1, tag=3)", "dist.send(t, 1)"),
    "no-gradient": EntryRule("a function through which gradients go became one through which none do", "mindspore", "torch", "from mindspore.communication import comm_func\ny, _ = comm_func.all_reduce(x)", "dist.all_reduce(x)"),
    "no-import": EntryRule("the file has no import to which the target's could be added"),
    "not-ported": EntryRule("the whole file is as it was: it could not be read, or it is not Python 3"),
    "numpy-memory": EntryRule("the array of a tensor's `numpy()` shares its memory in torch and MindSpore, and is a copy in Paddle", "torch", "paddle_3", "a = x.numpy()", "a = x.numpy().copy()", "tensors"),
    "one-hot-dtype": EntryRule("`one_hot` is float32 in Paddle and int64 elsewhere", "paddle_3", "torch", "y = paddle.nn.functional.one_hot(x, 4)", "y = (x.unsqueeze(-1) == paddle.arange(4)).astype(paddle.float32)", "tensors"),
    "op-not-known": EntryRule('a reduce op is or may be in a form that the target does not take, such as `"sum"`', "mindspore", "torch", "dist.all_reduce(t, op=kind)", 'dist.all_reduce(t, op="sum")'),
    "order-of-ties": EntryRule("MindSpore's function cannot be asked for a stable order of equal elements", "torch", "mindspore", "i = torch.argsort(x, stable=True)", "i = torch.argsort(x)", "tensors"),
    "pad-order": EntryRule("Paddle counts dimensions from the first one, and others from the last one", "paddle_3", "torch", "y = paddle.nn.functional.pad(x, pads)", "y = paddle.nn.functional.pad(x, pads, pad_from_left_axis=False)", "tensors"),
    "private-name": EntryRule("the target has the function under a private name alone", "torch", "mindspore", "class Sum(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        dist.all_reduce(x)\n        return x\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad", "y = x.clone()\ndist.all_reduce(y)", "tensors"),
    "random-numbers": EntryRule("the frameworks draw different random numbers, also from the same seed", "torch", "paddle_3", "y = torch.randn(4)", "import numpy as np\ny = torch.tensor(np.random.default_rng(1).normal(size=4))", "tensors"),
    "result-used": EntryRule("the code uses what a call returns, and the target's returns nothing; or asks whether it is None, and Paddle's never is", "torch", "paddle_3", "sender = dist.recv(t, 1)", "dist.recv(t, 1)\nsender = 1"),
    "root-list": EntryRule("a list is for the root alone, and the root is no simple expression", "mindspore", "torch", "dist.gather(t, parts, dst=find_root())", "root = find_root()\ndist.gather(t, parts, dst=root)"),
    "several-imports": EntryRule("a name means different things, as after imports in `try` and `except`", "torch", "paddle_3", "try:\n    from torch.distributed import all_gather_into_tensor as gather\nexcept ImportError:\n    from torch.distributed import all_gather as gather\ngather(out, t)", "from torch.distributed import all_gather_into_tensor as gather\ngather(out, t)"),
    "shape-may-be-number": EntryRule("the target takes a list of numbers, and the source does not show that it is one", "torch", "paddle_2", "y = torch.zeros(size)", "y = torch.zeros([size])", "tensors"),
    "shape-type": EntryRule("a shape is changed, or joined to what may be a list or a tuple: shapes are lists in Paddle 2, tuples elsewhere", "paddle_2", "torch", "s = x.shape + p", "s = list(x.shape) + list(p)", "tensors"),
    "sign-of-nan": EntryRule("`sign` of NaN is NaN in Paddle and 0 elsewhere", "torch", "paddle_3", "y = torch.sign(x)", "y = torch.where(x > 0, 1, -1)", "tensors"),
    "size-or-number": EntryRule("`split` takes the size of the parts, or their number in Paddle, and the source does not show which", "torch", "paddle_3", "parts = torch.split(x, n)", "parts = torch.split(x, [2, 2])", "tensors"),
    "source-tensors": EntryRule("with `--onto native --scope collectives`: the target takes its own tensors alone, and the program has the source's", "torch", "paddle_3", "import torch\nt = torch.zeros(2)\ndist.all_reduce(t)", "dist.barrier()", "native"),
    "spawned-function": EntryRule("Paddle's `spawn` does not pass the rank, and the function that it calls cannot be changed to ask for it", "torch", "paddle_3", "import torch.multiprocessing as mp\nfrom elsewhere import main\nmp.spawn(main, nprocs=2)", "import torch.multiprocessing as mp\nimport elsewhere\n\n\ndef main(rank):\n    elsewhere.main(rank)\n\n\nmp.spawn(main, nprocs=2)"),
    "star-import": EntryRule("`import *` hides which names are used, or what `dist` is", "torch", "paddle_3", "from torch.distributed import *", "from torch.distributed import all_reduce"),
    "tensor-function": EntryRule("the tables have no such function, method or attribute of tensors; statements that share tensors with a function stay as they are", "torch", "paddle_3", "n = torch.linalg.norm(x)", "n = (x * x).sum() ** 0.5", "tensors"),
    "tensor-or-list": EntryRule("the function takes both, and the source does not show which it gets", "paddle_3", "torch", "dist.stream.all_gather(out, t)", "out = paddle.empty([4])\ndist.stream.all_gather(out, t)"),
    "text-of-dtype": EntryRule("the code turns a dtype into text, which each framework spells differently", "torch", "paddle_3", "name = str(x.dtype)", "is_float = x.dtype == torch.float32", "tensors"),
    "unknown-argument": EntryRule("the call does not fit the recorded signature", "torch", "paddle_3", "dist.all_reduce(t, sync_op=True)", "dist.all_reduce(t, async_op=False)"),
    "unpacked-arguments": EntryRule("`*args` or `**kwargs` hide which arguments the call has", "torch", "paddle_3", "dist.all_reduce(*arguments)", "dist.all_reduce(t, group=group)"),
    "views-as-outputs": EntryRule("the code writes into the parts of a tensor: views here, copies there; or `copy_` into a part such as `x[1:]`, which MindSpore does not write", "torch", "paddle_3", "dist.all_gather(list(x.split(2)), y)", "parts = [torch.empty(2), torch.empty(2)]\ndist.all_gather(parts, y)\nx.copy_(torch.cat(parts))", "tensors"),
    "zero-in-shape": EntryRule("0 in the shape for `reshape` is the dimension's own length in Paddle, and a length of 0 elsewhere", "paddle_3", "torch", "y = (x + 1).reshape([0, -1])", "y = (x + 1).reshape([4, -1])", "tensors"),
}  # fmt: skip

_OPTIONS = {"native": " --onto native", "tensors": " --scope statements"}


def page_of(name: str) -> str:
    """Return what there is to say about the rule *name*, as Markdown."""
    rule = RULES[name]
    text = f"## {name}\n\n{rule.meaning[0].upper()}{rule.meaning[1:]}.\n"
    if rule.before:
        command = f"--from {rule.source} --to {rule.target}".replace("_", "-") + _OPTIONS.get(rule.code, "")
        text += f"\nWith `{command}`, this gets an entry:\n\n```\n{rule.before}\n```\n\nThis does not:\n\n```\n{rule.after}\n```\n"
    return text
