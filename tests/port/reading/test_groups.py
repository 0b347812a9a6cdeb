"""Groups are followed to where they are used, and names and strings that stand for groups and ops are ported where they stand for the same."""

from __future__ import annotations

import ast
import textwrap

import pytest

from shim.port import Plan, port_source

HEAD = "import torch.distributed as dist\n"

# Each source asks ``.size()`` of something, by the name of the way in which that is a group.
GROUPS = {
    "a dictionary": """
        groups = {name: dist.new_group(ranks) for name, ranks in parts.items()}
        n = groups["tensor"].size()
    """,
    "a dictionary that is filled": """
        groups = {}
        for name in names:
            groups[name] = dist.new_group(parts[name])
        for name, group in groups.items():
            n = group.size()
    """,
    "an attribute of a class": """
        class Parallel:
            tensor: Optional[dist.ProcessGroup] = None
            data = None
            @classmethod
            def make(cls):
                cls.data = dist.new_group([0])
        n = Parallel.data.size()
    """,
    "a list that is appended to": """
        groups = []
        groups.append(dist.new_group([0]))
        n = sum(group.size() for group in groups)
    """,
    "the values of a dictionary, numbered": """
        groups = {"a": dist.new_group([0])}
        for number, group in enumerate(list(groups.values())):
            n = group.size()
    """,
    "the result of a function": """
        def make(ranks):
            mine = None
            for each in ranks:
                group = dist.new_group(each)
                if 0 in each:
                    mine = group
            return mine
        n = make([[0]]).size()
    """,
    "an annotated result": """
        def make() -> dist.ProcessGroup: ...
        n = make().size()
    """,
    "one of several results": """
        def make():
            return dist.new_group([0]), 3
        group, number = make()
        n = group.size()
    """,
    "an assignment of several": """
        tensor, data = dist.new_group([0]), dist.new_group([1])
        n = data.size()
    """,
    "a parameter that becomes an attribute": """
        class A:
            def __init__(self, group):
                self.group = group
                n = group.size()
            def reduce(self, t):
                dist.all_reduce(t, group=self.group)
    """,
    "a parameter that a function passes on": """
        def reduce(t, group=None):
            dist.all_reduce(t, group=group)
        def mean(t, group):
            reduce(t, group)
            t /= group.size()
    """,
    "a parameter of calls with groups alone": """
        def describe(group, number=0):
            return group.size()
        describe(dist.new_group([0]), number=1)
        describe(group=dist.new_group([1]))
    """,
    "a constructor's argument": """
        class A:
            def __init__(self, group=None):
                self.group = group
            def ask(self):
                return self.group.size()
        A(dist.new_group([0]))
    """,
    "the attribute of a base class": """
        class A:
            def __init__(self):
                self.group = dist.new_group([0])
        class B(A):
            def ask(self):
                return self.group.size()
    """,
    "an argument of the base class's constructor": """
        class A:
            def __init__(self, group):
                self.group = group
        class B(A):
            def __init__(self):
                super().__init__(dist.new_group([0]))
                n = self.group.size()
    """,
    "a field of a dataclass": """
        @dataclass
        class Parallel:
            data: Optional[dist.ProcessGroup] = None
        def ask(parallel: Parallel):
            return parallel.data.size()
    """,
    "a field without an annotation of a group": """
        @dataclass
        class Parallel:
            data: object
        parallel = Parallel(data=dist.new_group([0]))
        n = parallel.data.size()
    """,
    "an attribute of an attribute": """
        class Parallel:
            def __init__(self):
                self.data = dist.new_group([0])
        class A:
            def __init__(self, parallel: Parallel):
                self.parallel = parallel
            def ask(self):
                return self.parallel.data.size()
    """,
    "a property": """
        class A:
            @property
            def group(self):
                return dist.new_group([0])
            def ask(self):
                return self.group.size()
    """,
    "a method's result": """
        class A:
            def make(self):
                return dist.new_group([0])
            def ask(self):
                return self.make().size()
    """,
    "a choice": """
        group = dist.new_group([0]) if alone else dist.group.WORLD
        n = (group or dist.group.WORLD).size()
    """,
    "an assignment in an expression": """
        if (group := dist.new_group([0])) is not None:
            n = group.size()
    """,
    "annotated containers": """
        def ask(groups: dict[str, dist.ProcessGroup], more: list[dist.ProcessGroup]):
            return groups["a"].size() + more[0].size()
    """,
    "a global variable": """
        GROUP = None
        def start():
            global GROUP
            GROUP = dist.new_group([0])
        def ask():
            return GROUP.size()
    """,
}


@pytest.mark.parametrize("source", GROUPS.values(), ids=GROUPS)
def test_groups_are_followed(source: str) -> None:
    text = HEAD + textwrap.dedent(source)
    ported = port_source(text, Plan("torch", "paddle_3"))
    assert ".size()" in text
    assert ported.text.count(".nranks") == text.count(".size()")


OTHERS = {
    "a tensor": "n = t.size()",
    "what is passed with groups and without": """
        def describe(what):
            return what.size()
        describe(dist.new_group([0]))
        describe(tensor)
    """,
    "a container of many things": """
        things = [dist.new_group([0]), tensor]
        n = things[1].size()
    """,
    "the other result": """
        def make():
            return dist.new_group([0]), tensor
        group, t = make()
        n = t.size()
    """,
    "a key": """
        groups = {}
        for name in names:
            groups[name] = dist.new_group([0])
        for name, group in groups.items():
            n = name.size()
    """,
    "an attribute of another class": """
        class A:
            def __init__(self):
                self.group = dist.new_group([0])
        class B:
            def ask(self):
                return self.group.size()
    """,
    "an attribute of an object of a class that is not known": """
        class A:
            def __init__(self):
                self.group = dist.new_group([0])
        def ask(a):
            return a.group.size()
    """,
    "variables that are each other": """
        a = b
        b = a
        n = a.size()
    """,
}


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_other_things_stay(source: str) -> None:
    text = HEAD + textwrap.dedent(source)
    ported = port_source(text, Plan("torch", "paddle_3"))
    assert ".size()" in ported.text
    assert ".nranks" not in ported.text


def test_a_call_with_too_many_arguments_is_left() -> None:
    ported = port_source(f"{HEAD}n = dist.get_process_group_ranks(g, 1, 2)\n", Plan("torch", "paddle_3"))
    assert "dist.get_process_group_ranks(g, 1, 2)" in ported.text
    assert [entry.kind for entry in ported.entries] == ["left"]


@pytest.mark.parametrize(
    ("source", "target", "use"),
    [
        ("torch", "paddle_3", "n = tp_group().size()"),
        ("torch", "mindspore", "n = self.process_group.rank()"),
        ("paddle_3", "torch", "n = other.pg.nranks"),
    ],
)
def test_what_is_named_like_a_group_is_reported(source: str, target: str, use: str) -> None:
    text = f"import {source.removesuffix('_3')}.distributed as dist\n{use}\n"
    ported = port_source(text.replace("mindspore.distributed", "mindspore.mint.distributed"), Plan(source, target))
    assert ported.text.endswith(f"{use}\n")
    assert [(entry.kind, entry.rule) for entry in ported.entries] == [("left", "may-be-group")]


@pytest.mark.parametrize("use", ["n = tensor.size()", "n = group.size(0)", "n = match.group()", "n = group.name"])
def test_what_is_not_is_not_reported(use: str) -> None:
    assert not port_source(f"{HEAD}{use}\n", Plan("torch", "paddle_3")).entries


NAMES_OF_GROUPS = [
    # an op by a module that has much else: its import stays, and the target's is written
    ("mindspore", "from mindspore import ops\nimport mindspore.mint.distributed as dist\ndist.all_reduce(x, ops.ReduceOp.MAX)",
     "from mindspore import ops\nimport shim.frontends.torch.distributed as dist\ndist.all_reduce(x, dist.ReduceOp.MAX)"),
    ("mindspore", "import mindspore.ops as P\nfrom mindspore.mint.distributed import all_reduce\nall_reduce(x, P.ReduceOp.MAX)",
     "import mindspore.ops as P\nimport shim.frontends.torch.distributed as dist\n"
     "from shim.frontends.torch.distributed import all_reduce\nall_reduce(x, dist.ReduceOp.MAX)"),
    # the world
    ("mindspore", "import mindspore.communication as c\nr = c.get_rank('hccl_world_group')",
     "import shim.frontends.torch.distributed as c\nr = c.get_rank(None)"),
    ("mindspore", "import mindspore.communication as c\nr = c.get_local_rank(c.GlobalComm.WORLD_COMM_GROUP)",
     "import shim.frontends.torch.distributed as c\nr = c.get_node_local_rank()"),
    ("mindspore", "from mindspore.communication import GlobalComm\nif not GlobalComm.INITED: start()",
     "from shim.frontends.torch.distributed import is_initialized\nif not is_initialized(): start()"),
    ("paddle_3", "import paddle.distributed as dist\ng = dist.get_group(id=0)",
     "import shim.frontends.torch.distributed as dist\ng = dist.group.WORLD"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "before", "after"), NAMES_OF_GROUPS)
def test_what_stands_for_the_same_is_ported(source: str, before: str, after: str) -> None:
    ported = port_source(before + "\n", Plan(source, "torch"))
    ast.parse(ported.text)
    assert ported.text == after + "\n"
    assert not ported.entries


@pytest.mark.parametrize("group", ["'g'", "name", "f'g{i}'"])
@pytest.mark.parametrize("target", ["torch", "paddle_3"])
def test_a_group_by_its_name_is_left(group: str, target: str) -> None:
    source = f"import mindspore.communication as c\nname = 'g'\nr = c.get_rank({group})\n"
    ported = port_source(source, Plan("mindspore", target))
    assert ported.text.splitlines()[-1] == source.splitlines()[-1]
    assert [(entry.line, entry.kind, entry.rule) for entry in ported.entries] == [(3, "left", "group-by-name")]


ASKED = [
    ("torch", "from torch.distributed import get_process_group_ranks, barrier\nr = get_process_group_ranks(g)\nbarrier()",
     "from shim.frontends.paddle_3.distributed import barrier\nr = g.ranks\nbarrier()"),
    ("mindspore", "from mindspore.communication import get_group_rank_from_world_rank as f\nr = f(3, g)", "r = g.get_group_rank(3)"),
    ("mindspore", "import mindspore.communication as c\nr = c.get_group_rank_from_world_rank(world_rank_id=(i), group=g)",
     "import shim.frontends.paddle_3.distributed as c\nr = g.get_group_rank(i)"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "before", "after"), ASKED)
def test_an_import_goes_whose_function_became_a_member_of_the_group(source: str, before: str, after: str) -> None:
    ported = port_source(before + "\n", Plan(source, "paddle_3"))
    assert ported.text == after + "\n"
    assert not ported.entries


@pytest.mark.parametrize("arguments", ["f(), g", "3, get(g)", "3, None", "*both"])
def test_a_rank_and_a_group_that_cannot_change_places_are_left(arguments: str) -> None:
    source = f"import mindspore.communication as c\nr = c.get_group_rank_from_world_rank({arguments})\n"
    ported = port_source(source, Plan("mindspore", "paddle_3"))
    assert ported.text.splitlines()[-1] == source.splitlines()[-1]
    assert [(entry.line, entry.kind) for entry in ported.entries] == [(2, "left")]
