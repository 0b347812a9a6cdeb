"""Every recorded function and class has an equivalent in the table, or a declared reason why it has none; and the report tells that reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shim.port import Plan, port_source
from shim.port.apis import APIS
from shim.port.correspondences.members import GROUP_MEMBERS, member_for
from shim.port.correspondences.names import name_for
from shim.port.correspondences.no_equivalent import all_declared, declared
from shim.port.correspondences.returning import primitive, returned
from shim.port.correspondences.table import forms_of, rows_with
from shim.record import read

DIRECTIONS = [(source, target) for source in APIS for target in APIS if source != target]


def recorded_names(api: str) -> Iterator[str]:
    """The canonical paths of what is recorded of *api*: functions, classes and exceptions, those of modules that have others' names once."""
    found = set()
    for module, names in read(APIS[api].record).modules.items():
        found |= {
            APIS[api].canonical(f"{module}.{name}")
            for name, record in names.items()
            if not isinstance(record, str) or record.startswith("(") or record == "exception"
        }
    yield from sorted(found)


def has_equivalent(name: str, source: str, target: str) -> bool:
    rows = rows_with(name, source)
    if any(forms_of(row, target) or (row in GROUP_MEMBERS and member_for(row, target)) for row, _ in rows):
        return True
    returning = returned(name, source) or primitive(name, source)
    if returning is not None:
        return bool(forms_of(returning.row, target))
    return name_for(name, source, target) is not None


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_each_recorded_name_has_an_equivalent_or_a_reason(source: str, target: str) -> None:
    names = list(recorded_names(source))
    assert len(names) > 50
    neither = [
        name
        for name in names
        if not has_equivalent(name, source, target)
        and not has_equivalent(f"{name}()", source, target)
        and declared(name, source, target) is None
    ]
    assert not neither


@pytest.mark.parametrize("source", APIS)
def test_what_is_declared_is_without_an_equivalent_somewhere(source: str) -> None:
    others = [target for target in APIS if target != source]
    for name, groups in all_declared(source).items():
        for group in groups:
            targets = group.to.split() or others
            assert set(targets) <= APIS.keys()
            reached = [target for target in targets if target != source and declared(name, source, target) is group]
            assert not [target for target in reached if has_equivalent(name, source, target)], name
            assert reached or source in targets or APIS[source].framework == "paddle", name


def test_all_that_a_declaration_names_is_recorded_or_a_module() -> None:
    for source in ("torch", "paddle_2", "mindspore"):
        known = set(recorded_names(source)) | (set(recorded_names("paddle_3")) if source == "paddle_2" else set())
        for name, groups in all_declared(source).items():
            for group in groups:
                assert (
                    name in known
                    or name.rpartition(".")[0].endswith((".Backend", ".ReduceOp", ".multiprocessing"))
                    or (group.names.split()[0] in MODULES[source])
                ), name


# The first name of each group of modules and of values that have no signatures of their own.
MODULES = {
    "torch": ("nn", "fsdp", "checkpoint", "rpc", "elastic", "_symmetric_memory", "_functional_collectives",
              "collective_utils"),
    "paddle_2": ("fleet", "rpc"),
    "mindspore": ("set_auto_parallel_context",),
}  # fmt: skip


@pytest.mark.parametrize("source", APIS)
def test_reasons_and_advice_are_sentences(source: str) -> None:
    for groups in all_declared(source).values():
        for group in groups:
            assert group.why[:1].islower() or group.why.startswith(("MindSpore", "Paddle", "torch")), group
            assert not group.why.endswith("."), group
            assert group.advice[:1].isupper(), group
            assert group.advice.endswith("."), group


TOLD = [
    ("torch", "paddle_3", "import torch.distributed as d\nd.gather_object(1)\n", "Call all_gather_object"),
    ("torch", "mindspore", "from torch.distributed import new_subgroups\n", "Call new_group for each list"),
    ("torch", "mindspore", "import torch.distributed as d\nx = d.ReduceOp.BXOR\n", "Reduce another form"),
    ("torch", "paddle_2", "import torch.distributed as d\nd.all_reduce(t, d.ReduceOp.AVG)\n", "divide by the size"),
    ("mindspore", "paddle_2", "import mindspore.mint.distributed as d\nd.all_reduce(t, 'avg')\n", "divide by the size"),
    ("torch", "paddle_3", "from torch.distributed.fsdp import FullyShardedDataParallel\n", "needs groups"),
    ("torch", "paddle_3", "import torch.multiprocessing as mp\nmp.spawn(*a)\n", "paddle.distributed.spawn"),
    ("paddle_3", "torch", "import paddle.distributed as d\nd.wait(t)\n", "Call wait() of the handle"),
    ("mindspore", "torch", "from mindspore import ops\ny = ops.AllGatherV()(x)\n", "one of each size"),
    ("mindspore", "torch", "from mindspore.communication import create_group\n", "group = new_group(ranks) on every"),
    ("mindspore", "torch", "import mindspore as m\nm.set_auto_parallel_context(a=1)\n", "the number of ranks"),
]


@pytest.mark.parametrize(("source", "target", "text", "advice"), TOLD)
def test_the_report_tells_what_to_do_instead(source: str, target: str, text: str, advice: str) -> None:
    (entry,) = port_source(text, Plan(source, target)).entries
    assert (entry.kind, entry.rule) == ("left", "no-equivalent")
    assert advice in entry.advice
    assert "has no equivalent of" in entry.why
