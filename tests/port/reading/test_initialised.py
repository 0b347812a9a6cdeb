"""Questions for the rank that come before a program has initialised: where the file shows that none does, where it may, where it does."""

from __future__ import annotations

import pytest

from shim.port import Plan, port_source

HEAD = "import os\nimport paddle.distributed as dist\n"
ENVIRONMENT = 'int(os.environ.get("RANK", 0))'


def port(body: str, target: str = "torch") -> tuple[str, list[str]]:
    ported = port_source(f"{HEAD}{body}\n", Plan("paddle_3", target))
    return ported.text.split("\n", 2)[2], [entry.rule for entry in ported.entries]


SURE = [
    "dist.init_parallel_env()\nr = dist.get_rank()",
    "if k:\n    dist.init_parallel_env()\n    r = dist.get_rank()",
    "if k:\n    dist.init_parallel_env()\nelse:\n    dist.barrier()\nr = dist.get_rank()",
    "if not dist.is_initialized():\n    dist.init_parallel_env()\nr = dist.get_rank()",
    "r = dist.get_rank() if dist.is_initialized() else 0",
    "r = 0 if not dist.is_initialized() else dist.get_rank()",
    "first = not dist.is_initialized() or dist.get_rank() == 0",
    "if dist.is_initialized() and k and dist.get_rank() == 0: ...",
    "if dist.is_initialized():\n    r = dist.get_rank()",
    "if k and dist.is_initialized():\n    r = dist.get_rank()",
    "def f():\n    if not dist.is_initialized():\n        return 0\n    return dist.get_rank()",
    "def f(x):\n    x /= dist.get_rank()\n    dist.all_reduce(x)",
    "def f(x):\n    r = dist.get_rank()\n    for _ in x: ...\n    with k:\n        dist.all_reduce(x)",
    "def f():\n    return dist.get_rank()\ndist.init_parallel_env()\nf()",
    "def start():\n    dist.init_parallel_env()\nstart()\nr = dist.get_rank()",
    "def f():\n    def g():\n        return dist.get_rank()\n    dist.barrier()\n    g()",
    "class A:\n    def f(self):\n        return dist.get_rank()\n    def g(self):\n        dist.barrier()\n        self.f()",
    "def f(n):\n    f(dist.get_rank())\ndist.barrier()\nf(1)",
    "with k:\n    dist.init_parallel_env()\nr = dist.get_rank()",
    "try:\n    dist.init_parallel_env()\nexcept OSError:\n    raise\nr = dist.get_rank()",
    "g = dist.new_group([0])\nr = dist.get_rank(g)",
    "def f(g): return dist.get_rank(g)",
]


@pytest.mark.parametrize("body", SURE)
def test_the_target_is_asked_where_init_surely_comes_first(body: str) -> None:
    text, rules = port(body)
    assert "environ" not in text
    assert "get_rank(" in text
    assert not rules


EARLY = [
    "{}\ndist.init_parallel_env()",
    "if {} > 1:\n    dist.init_parallel_env()",
    "if k:\n    dist.init_parallel_env()\nr = {}",
    "for _ in k:\n    dist.init_parallel_env()\nr = {}",
    "try:\n    dist.init_parallel_env()\nexcept OSError:\n    pass\nr = {}",
    "def main():\n    print({})\n    dist.init_parallel_env()",
    "if dist.is_initialized():\n    r = 0\nelse:\n    r = {}\n    dist.init_parallel_env()",
    "f = lambda: {}\ndist.init_parallel_env()",
    "def f(r={}): ...\ndist.init_parallel_env()\nf()",
    "class A:\n    r = {}\ndist.init_parallel_env()",
]


@pytest.mark.parametrize("asked", ["dist.get_rank()", "dist.get_rank(None)", "dist.ParallelEnv().rank"])
@pytest.mark.parametrize("body", EARLY)
def test_the_environment_is_read_beside_init(body: str, asked: str) -> None:
    text, rules = port(body.format(asked))
    assert ENVIRONMENT in text
    assert not rules
    assert "environ" not in port(body.format(asked), "mindspore")[0]


MAYBE = [
    "f = {'r': dist.get_rank}\ndist.init_parallel_env()",
    "f = functools.partial(dist.get_rank)\ndist.init_parallel_env()",
    "def g():\n    return dist.get_rank()\ndef main():\n    g()\n    dist.init_parallel_env()\nmain()",
    "class A:\n    def __init__(self):\n        self.r = dist.get_rank()\ndef main():\n    A()\n    dist.init_parallel_env()\nmain()",
    "r = dist.get_rank()",
    "def f():\n    return dist.get_rank()",
    "def f(x):\n    if dist.get_rank() == 9:\n        return\n    dist.all_reduce(x)",
    "def f(x):\n    r = dist.get_rank()\n    if k:\n        return\n    dist.all_reduce(x)",
    "def f():\n    return dist.get_rank()\nif k:\n    f()\ndist.init_parallel_env()",
    "def f():\n    if dist.is_initialized():\n        return 0\n    return dist.get_rank()",
]


@pytest.mark.parametrize("body", MAYBE)
def test_what_the_file_does_not_show_is_reported(body: str) -> None:
    text, rules = port(body)
    assert "environ" not in text
    assert rules == ["before-init"]


def test_a_function_in_a_variable() -> None:
    text, rules = port("ask = dist.get_rank\nr = ask()\ndist.init_parallel_env()\nr = ask()")
    assert text.splitlines()[:2] == ["ask = dist.get_rank", f"r = {ENVIRONMENT}"]
    assert (text.splitlines()[3], rules) == ("r = ask()", [])


def test_there_is_one_entry_in_a_file() -> None:
    ported = port_source(
        f"{HEAD}def f():\n    return dist.get_rank()\nn = dist.get_world_size()\n", Plan("paddle_3", "torch")
    )
    (entry,) = ported.entries
    assert entry.line == 4
    assert entry.why.endswith("on line 5")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import paddle.distributed as dist\n", "import os\nimport shim.frontends.torch.distributed as dist\n"),
        ("import os as o\nimport paddle.distributed as dist\n", "import os as o\nimport shim.frontends.torch.distributed as dist\n"),
        ("from paddle.distributed import get_rank, init_parallel_env\n", "import os\nfrom shim.frontends.torch.distributed import init_process_group\n"),
        ('"""A."""\nfrom __future__ import annotations\nimport re\nimport paddle.distributed as dist\n', '"""A."""\nfrom __future__ import annotations\nimport os\nimport re\n'),
    ],
)  # fmt: skip
def test_os_is_imported_once(before: str, after: str) -> None:
    call = "" if "get_rank" in before else "dist."
    text = port_source(f"{before}{call}get_rank()\n{call}init_parallel_env()\n", Plan("paddle_3", "torch")).text
    assert text.startswith(after)
    assert "get_rank" not in text


def test_an_error_that_the_program_catches() -> None:
    body = "import torch.distributed as dist\ntry:\n    r = dist.get_rank()\nexcept {}\n"
    rules = {
        handler: [entry.rule for entry in port_source(body.format(handler), Plan("torch", "mindspore")).entries]
        for handler in ("ValueError: r = 0", "ValueError:\n    print(1)\n    raise")
    }
    assert list(rules.values()) == [["before-init"], []]
