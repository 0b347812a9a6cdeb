from __future__ import annotations

import pytest

from checks import frontend_functions

MODULE = "shim/frontends/torch/distributed/__init__.py"

GOOD = '''
    """Torch's module."""
    from shim.frontends.torch._names import _world
    __all__ = ["all_reduce", "barrier"]

    def all_reduce(tensor, group=None, async_op=False):
        """Sum *tensor*.

        Raises: MismatchError.
        Deviates: keeps going.
        See: a page
        and its second line.
        """
        return finish(calls.all_reduce(group, tensor, tensor), async_op)

    def barrier(group=None):
        """Wait."""
        members = group_of(group)
        limit = None if members is None else members.timeout
        return None if calls.barrier(members) is ENDED else _wait(members, limit)

    class Options:
        def __init__(self, *args, **kwargs):
            self.given = args, kwargs
    '''


def test_literal_functions_pass(write_tree) -> None:
    assert frontend_functions.check(write_tree({MODULE: GOOD})) == []


@pytest.mark.parametrize(
    ("function", "finding"),
    [
        ("def f(x):\n    return x", "has no docstring"),
        ('def f(x):\n    """1\n    2\n    3\n    4\n    5\n    6\n    7"""\n    return x', "docstring of 7 lines"),
        ('def f(x):\n    """Do."""', "has 0 statements"),
        ('def f(x):\n    """Do."""' + "\n    print(x)" * 9, "has 9 statements"),
        ('def f(x):\n    """Do."""\n    if x:\n        return 1', "an if"),
        ('def f(x):\n    """Do."""\n    return 1 if x.core.engine is None else 2', "a branch on the engine"),
        ('def f(x):\n    """Do."""\n    return x.engine and 2', "a branch on the engine"),
        ('def f(x):\n    """Do."""\n    return [y for y in x]', "a loop"),
        ('def f(x):\n    """Do."""\n    for y in x:\n        print(y)', "a for"),
        ('def f(x):\n    """Do."""\n    while x:\n        pass', "a while"),
        ('def f(x):\n    """Do."""\n    with x:\n        pass', "a with"),
        ('def f(x):\n    """Do."""\n    try:\n        return x\n    finally:\n        pass', "a try"),
        ('@wraps(g)\ndef f(x):\n    """Do."""\n    return x', "has a decorator"),
        ('def f(x, tag=0):\n    """Do with tag."""\n    return x', "ignores its parameter tag"),
        ('def f(x, *rest):\n    """Do."""\n    return x', "ignores its parameter rest"),
        ('def f(x, *, tag=0):\n    """Do."""\n    tag = x\n    return x', "ignores its parameter tag"),
        ('def f(x, tag=0):\n    """Do."""\n    del tag\n    return x', "ignores its parameter tag"),
    ],
)
def test_what_is_no_straight_line_is_found(write_tree, function: str, finding: str) -> None:
    root = write_tree({MODULE: f'__all__ = ["f"]\n{function}\n'})
    assert any(finding in line for line in frontend_functions.check(root))


def test_the_place_is_told(write_tree) -> None:
    root = write_tree({MODULE: '__all__ = ["f"]\n\n\ndef f(x):\n    return x\n'})
    assert frontend_functions.check(root) == [f"{MODULE}:4: shim.frontends.torch.distributed.f has no docstring"]


@pytest.mark.parametrize("body", ["    if x:\n        return 1\n    return 2", "    y = x\n    return y"])
def test_private_functions_may_decide(write_tree, body: str) -> None:
    assert frontend_functions.check(write_tree({MODULE: f"__all__ = []\ndef _f(x):\n{body}\n"})) == []


def test_private_functions_and_methods_read_their_parameters(write_tree) -> None:
    source = "__all__ = []\ndef _f(x):\n    return 1\nclass Work:\n    def wait(self, timeout):\n        return None\n"
    findings = frontend_functions.check(write_tree({MODULE: source}))
    assert [line.partition(": ")[2].partition(":")[0] for line in findings] == [
        "_f ignores its parameter x",
        "wait ignores its parameter timeout",
    ]


@pytest.mark.parametrize(
    "function",
    [
        "def wait(self, timeout): ...",
        'def wait(self, timeout):\n    """Wait."""\n    raise NotImplementedError',
        "def _wait(self, _timeout):\n    return None",
        "def __new__(cls, *arguments):\n    del arguments\n    return super().__new__(cls)",
    ],
)
def test_some_need_not_read(write_tree, function: str) -> None:
    assert frontend_functions.check(write_tree({MODULE: f"__all__ = []\n{function}\n"})) == []


def test_a_public_parameter_is_read_whatever_its_name(write_tree) -> None:
    root = write_tree({MODULE: '__all__ = ["f"]\ndef f(_ranks):\n    """Do."""\n    return 1\n'})
    assert len(frontend_functions.check(root)) == 1


def test_functions_from_a_private_package_are_followed(write_tree) -> None:
    root = write_tree(
        {
            "shim/frontends/paddle_3/distributed.py": (
                'from shim.frontends._paddle.ranks import rank_of as get_rank\n__all__ = ["get_rank"]\n'
            ),
            "shim/frontends/paddle_2/distributed.py": (
                'from shim.frontends._paddle.ranks import rank_of as get_rank\n__all__ = ["get_rank"]\n'
            ),
            "shim/frontends/_paddle/ranks.py": "def rank_of(group):\n    return group\n\ndef other(group):\n    return group\n",
        }
    )
    assert frontend_functions.check(root) == [
        "shim/frontends/_paddle/ranks.py:1: shim.frontends._paddle.ranks.rank_of has no docstring"
    ]


def test_a_package_may_offer_its_modules(write_tree) -> None:
    root = write_tree(
        {
            "shim/frontends/mindspore/__init__.py": 'from shim.frontends.mindspore import mint\n__all__ = ["mint"]\n',
            "shim/frontends/mindspore/mint.py": "__all__ = []\n",
        }
    )
    assert frontend_functions.check(root) == []


RECORDED = '{"modules": {"torch.distributed": {"_new_group": "(ranks)", "_World": {}}}}'


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("    return ranks", None),
        ("    del ranks\n    return None", "_new_group ignores its parameter ranks"),
        ("    if ranks:\n        return 1", "an if"),
    ],
)
def test_what_is_recorded_of_a_framework_is_public(write_tree, body: str, finding: str | None) -> None:
    file = "shim/record/torch-2.json"
    private = MODULE.replace("__init__", "_groups")
    source = (
        f'__all__ = []\ndef _new_group(ranks):\n    """Make one of *ranks*."""\n{body}\ndef _other(x):\n    del x\n'
    )
    root = write_tree(
        {
            file: RECORDED,
            private: source,
            MODULE: "from shim.frontends.torch.distributed._groups import _new_group, _other\n__all__ = []\n",
        }
    )
    found = frontend_functions.check(root)
    assert any(finding in line for line in found) if finding else found == []
    write_tree({file: '{"modules": {}}'})
    assert frontend_functions.check(root) == []


def test_a_module_that_its_framework_gave_an_underscore_is_public(write_tree) -> None:
    module = "shim/frontends/torch/distributed/_functional_collectives.py"
    bad = '__all__ = ["f"]\n\ndef f(x):\n    return x\n'
    found = frontend_functions.check(write_tree({module: bad, module.replace("_functional", "_private"): bad}))
    assert [finding.partition(":")[0] for finding in found] == [module]
