"""The same questions about groups, asked of torch with gloo and of ours on the same ranks, have the same answers."""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch.distributed

import shim.frontends.torch.distributed as dist
from shim.errors import ShimError
from shim.frontends.torch._groups import registry

Ask = Callable[[Any, dict[str, Any]], Any]

# Not run with torch: ``merge_remote_group`` ends its process with a segmentation fault, and ``ProcessGroup.boxed`` takes
# its groups alone. ``split_group`` and ``shrink_group`` refuse every group without an accelerator; their mistakes in
# arguments are compared as far as torch looks at those first. A group that its members make alone comes before those
# that not all of them are in: torch hangs afterwards, as its name for it counts the groups that each member is in. The
# ranks of -100 are not asked for: torch tells those of the last group that the caller is not in.
GROUPS: list[tuple[str, Ask]] = [
    ("count", lambda d, g: d.get_pg_count()),
    ("initialized", lambda d, g: d.is_initialized()),
    ("all", lambda d, g: keep(g, "all", d.new_group())),
    ("local", lambda d, g: keep(g, "local", d.new_group([0, 1], use_local_synchronization=True))),
    ("some", lambda d, g: keep(g, "some", d.new_group([n(d) - 1, 0], group_desc="ends", backend="GLOO"))),
    ("reversed", lambda d, g: keep(g, "reversed", d.new_group(list(range(n(d)))[::-1], sort_ranks=False))),
    ("local of me", lambda d, g: keep(g, "me", d.new_group([d.get_rank()], use_local_synchronization=True))),
    ("tuple", lambda d, g: d.new_group((0, 1))),
    ("counted", lambda d, g: d.get_pg_count()),
    ("subgroups", lambda d, g: d.new_subgroups(1)),
    ("subgroups of the world", lambda d, g: d.new_subgroups(n(d), group=d.group.WORLD)),
    ("subgroups by enumeration", lambda d, g: d.new_subgroups_by_enumeration([[1], [0]], group_desc="parts")),
    ("ranks of all", lambda d, g: d.get_process_group_ranks(g["all"])),
    ("ranks of none", lambda d, g: d.get_process_group_ranks(None)),
    ("ranks reversed", lambda d, g: d.get_process_group_ranks(g["reversed"])),
    ("ranks of some", lambda d, g: None if g["some"] == -100 else d.get_process_group_ranks(g["some"])),
    ("rank in some", lambda d, g: (d.get_rank(g["some"]), d.get_world_size(g["some"]))),
    ("rank in reversed", lambda d, g: (d.get_rank(g["reversed"]), d.get_world_size(g["reversed"]))),
    ("rank in local", lambda d, g: d.get_rank(g["local"]) if g["local"] else None),
    ("rank outside", lambda d, g: (d.get_rank(-100), d.get_world_size(-100))),
    ("backend", lambda d, g: (d.get_backend(), d.get_backend(g["all"]), d.get_backend_config(g["all"]))),
    ("backend outside", lambda d, g: d.get_backend(-100)),
    ("config outside", lambda d, g: d.get_backend_config(-100)),
    ("group rank", lambda d, g: [d.get_group_rank(g["reversed"], rank) for rank in range(n(d))]),
    ("global rank", lambda d, g: [d.get_global_rank(g["reversed"], rank) for rank in range(n(d))]),
    ("group rank of world", lambda d, g: d.get_group_rank(d.group.WORLD, 1)),
    ("group rank beyond", lambda d, g: d.get_group_rank(g["all"], 9)),
    ("global rank beyond", lambda d, g: d.get_global_rank(g["all"], 9)),
    ("group rank of none", lambda d, g: d.get_group_rank(None, 0)),
    ("group rank of text", lambda d, g: d.get_group_rank("x", 0)),
    ("rank of text", lambda d, g: d.get_rank("x")),
    ("descriptions", lambda d, g: (d.group.WORLD.group_desc, g["all"].group_desc, g["reversed"].group_desc)),
    ("names", lambda d, g: (d.group.WORLD.group_name, g["all"].group_name, g["reversed"].group_name)),
    ("methods", lambda d, g: [(p.rank(), p.size(), p.name()) for p in (d.group.WORLD, g["all"], g["reversed"])]),
    ("device", lambda d, g: (d.group.WORLD.bound_device_id, g["all"].use_pg_for_symm_mem_rendezvous)),
    ("duplicate", lambda d, g: d.new_group([0, 0])),
    ("beyond", lambda d, g: d.new_group([0, 9])),
    ("negative", lambda d, g: d.new_group([-1])),
    ("too many", lambda d, g: d.new_group(list(range(n(d) + 1)))),
    ("no timeout", lambda d, g: d.new_group(timeout=5)),
    ("subgroups of none", lambda d, g: d.new_subgroups()),
    ("subgroups of 0", lambda d, g: d.new_subgroups(0)),
    ("subgroups too large", lambda d, g: d.new_subgroups(9)),
    ("subgroups text", lambda d, g: d.new_subgroups("1")),
    ("enumeration of nothing", lambda d, g: d.new_subgroups_by_enumeration([])),
    ("enumeration of None", lambda d, g: d.new_subgroups_by_enumeration(None)),
    ("enumeration twice", lambda d, g: d.new_subgroups_by_enumeration([[0], [0, 1]])),
    ("split of nothing", lambda d, g: d.split_group(None, [])),
    ("split of None", lambda d, g: d.split_group()),
    ("shrink no list", lambda d, g: d.shrink_group(0)),
    ("shrink nothing", lambda d, g: d.shrink_group([])),
    ("shrink flags", lambda d, g: d.shrink_group([0], shrink_flags=7)),
    ("default group", lambda d, g: c(d)._get_default_group() is d.group.WORLD is d.GroupMember.WORLD),
    ("group size", lambda d, g: (c(d)._get_group_size(None), c(d)._get_group_size(g["all"]))),
    ("size by name", lambda d, g: c(d)._get_group_size_by_name(g["all"].group_name)),
    ("resolve", lambda d, g: c(d)._resolve_process_group(g["all"].group_name) is g["all"]),
    ("resolve nothing", lambda d, g: c(d)._resolve_process_group("nope")),
    ("name of no group", lambda d, g: c(d)._get_process_group_name(3)),
    ("outside", lambda d, g: (c(d)._rank_not_in_group(-100), c(d)._rank_not_in_group(g["all"]))),
    ("find", lambda d, g: c(d)._find_pg_by_ranks_and_tag("", list(range(n(d)))) is d.group.WORLD),
    ("find nothing", lambda d, g: c(d)._find_pg_by_ranks_and_tag("x", [0])),
    ("tagged", lambda d, g: keep(g, "tagged", c(d)._new_group_with_tag([0, 1], pg_tag="x"))),
    (
        "find tagged",
        lambda d, g: c(d)._find_pg_by_ranks_and_tag("x", [1, 0]) is (g["tagged"] if d.get_rank() < 2 else None),
    ),
    ("tags", lambda d, g: sorted(c(d)._world.tags_to_pg) == sorted({*c(d)._world.pg_to_tag.values(), ""})),
    ("stride", lambda d, g: c(d)._find_or_create_pg_by_ranks_and_tag("y", [0, 1, 2], 2)),
    ("not among", lambda d, g: c(d)._find_or_create_pg_by_ranks_and_tag("y", [7], 1)),
    ("no tag", lambda d, g: c(d)._find_or_create_pg_by_ranks_and_tag("", [d.get_rank(), 7], 2)),
    ("canonical", lambda d, g: [c(d)._canonicalize_group_rank(g["reversed"], 0, None, flag) for flag in (False, True)]),
    ("canonical by group", lambda d, g: c(d)._canonicalize_group_rank(g["reversed"], None, 0, True)),
    ("canonical neither", lambda d, g: c(d)._canonicalize_group_rank(g["all"])),
    ("canonical both", lambda d, g: c(d)._canonicalize_group_rank(g["all"], 0, 0)),
    ("global rank, as it was called", lambda d, g: c(d)._get_global_rank(g["reversed"], 0)),
    ("object device", lambda d, g: (c(d)._get_object_coll_device(), str(c(d)._get_pg_default_device(g["all"])))),
    ("store", lambda d, g: (c(d)._get_default_store().set("key", "value"), c(d)._get_default_store().get("key"))),
    (
        "store of group",
        lambda d, g: (g["all"].get_group_store().set("k", "v"), c(d)._get_process_group_store(g["all"]).get("k")),
    ),
    ("timeout outside", lambda d, g: c(d)._set_pg_timeout(datetime.timedelta(seconds=5), -100)),
    ("timeout no timedelta", lambda d, g: c(d)._set_pg_timeout(5, g["all"])),
    ("config info", lambda d, g: [tuple(sorted(info)) for info in c(d)._world.pg_config_info[:1]]),
    ("group ranks", lambda d, g: c(d)._world.pg_group_ranks[g["reversed"]]),
    (
        "backend by device",
        lambda d, g: type(g["all"]._get_backend(torch.device("cpu"))).__name__.startswith("ProcessGroup"),
    ),
    ("destroy outside", lambda d, g: d.destroy_process_group(-100)),
    ("destroy", lambda d, g: d.destroy_process_group(g["all"])),
    ("destroy again", lambda d, g: d.destroy_process_group(g["all"])),
    ("rank in destroyed", lambda d, g: d.get_rank(g["all"])),
    ("backend of destroyed", lambda d, g: d.get_backend(g["all"])),
    ("group rank of destroyed", lambda d, g: d.get_group_rank(g["all"], 0)),
    ("count after", lambda d, g: d.get_pg_count() > 4),
    (
        "shut down",
        lambda d, g: (g["reversed"].shutdown(), d.get_rank(g["reversed"]), d.destroy_process_group(g["reversed"])),
    ),
    ("init twice", lambda d, g: d.init_process_group("gloo")),
]

DIFFERENT: dict[str, tuple[Any, str]] = {
    "timeout no timedelta": (TypeError, "torch leaves the check to its C++ class, which also raises TypeError"),
}

LONELY: list[tuple[str, Ask]] = [
    ("available", lambda d, g: [d.is_available(), d.is_gloo_available(), d.is_nccl_available(), d.is_mpi_available()]),
    ("more", lambda d, g: [d.is_ucc_available(), d.is_xccl_available(), d.is_torchelastic_launched()]),
    ("backends", lambda d, g: [d.is_backend_available(b) for b in ("gloo", "GLOO", "nccl", "mpi", "foo", "")]),
    ("backends of devices", lambda d, g: [d.is_backend_available(b) for b in ("cpu:gloo", "cpu:gloo,cuda:nccl")]),
    ("backend pair", lambda d, g: d.is_backend_available("cpu:gloo:x")),
    (
        "default backends",
        lambda d, g: [d.get_default_backend_for_device(x) for x in ("cpu", "cuda:1", "mps", torch.device("cpu"))],
    ),
    ("no default", lambda d, g: d.get_default_backend_for_device("meta")),
    ("no device", lambda d, g: d.get_default_backend_for_device(None)),
    ("config", lambda d, g: [config(d, b) for b in ("gloo", "nccl", "undefined", "fake", "mpi", "ucc", "xccl")]),
    ("config of devices", lambda d, g: [config(d, b) for b in ("cpu:gloo,cuda:nccl", "CPU:GLOO", "foo", "cpu:foo")]),
    ("config twice", lambda d, g: config(d, "cpu:gloo,cpu:mpi")),
    ("config of three", lambda d, g: config(d, "a:b:c")),
    ("capability", lambda d, g: d.Backend.backend_capability),
    ("node rank", lambda d, g: d.get_node_local_rank(3)),
    ("no node rank", lambda d, g: d.get_node_local_rank()),
    ("levels", lambda d, g: [(level.name, level.value, int(level)) for level in d.DebugLevel.__members__.values()]),
    ("level", lambda d, g: (d.set_debug_level(d.DebugLevel.INFO), d.get_debug_level().name)),
    ("level from", lambda d, g: (d.set_debug_level_from_env(), d.get_debug_level().name)),
    ("no level", lambda d, g: d.set_debug_level(1)),
    ("count", lambda d, g: d.get_pg_count()),
    ("initialized", lambda d, g: d.is_initialized()),
    ("world", lambda d, g: (d.group.WORLD, d.GroupMember.WORLD, c(d)._World().default_pg)),
    ("rank", lambda d, g: d.get_rank()),
    ("ranks", lambda d, g: d.get_process_group_ranks(None)),
    ("size", lambda d, g: c(d)._get_group_size(None)),
    ("backend", lambda d, g: d.get_backend()),
    ("backend config", lambda d, g: d.get_backend_config()),
    ("default store", lambda d, g: c(d)._get_default_store()),
    ("default group", lambda d, g: c(d)._get_default_group()),
    ("new group", lambda d, g: d.new_group()),
    ("subgroups", lambda d, g: d.new_subgroups(1)),
    ("split", lambda d, g: d.split_group(None, [[0]])),
    ("shrink", lambda d, g: d.shrink_group([0])),
    ("destroy", lambda d, g: d.destroy_process_group()),
    ("abort", lambda d, g: c(d)._abort_process_group()),
    ("destroy outside", lambda d, g: d.destroy_process_group(-100)),
    ("resolve", lambda d, g: c(d)._resolve_process_group("x")),
    ("url", lambda d, g: d.rendezvous(3)),
    ("scheme", lambda d, g: d.rendezvous("foo://x")),
    ("rank of url", lambda d, g: d.rendezvous("tcp://localhost:0", "0", 1)),
    ("no port", lambda d, g: next(d.rendezvous("tcp://localhost", 0, 1))),
    ("no size", lambda d, g: next(d.rendezvous("tcp://localhost:0?rank=0"))),
    ("twice", lambda d, g: next(d.rendezvous("tcp://localhost:0?rank=0", 0, 1))),
    ("no path", lambda d, g: next(d.rendezvous("file://", 0, 1))),
    ("no address", lambda d, g: next(d.rendezvous("env://", 0, 1))),
    ("meet", lambda d, g: next(d.rendezvous("tcp://localhost:0", 0, 1))[1:]),
    ("registered", lambda d, g: d.register_rendezvous_handler("tcp", print)),
    ("init at no scheme", lambda d, g: d.init_process_group("gloo", init_method="foo://x", rank=0, world_size=1)),
    ("init with both", lambda d, g: d.init_process_group("gloo", init_method="env://", store=d.HashStore())),
    ("init without rank", lambda d, g: d.init_process_group("gloo", store=d.HashStore())),
    ("init no backend", lambda d, g: d.init_process_group("foo", store=d.HashStore(), rank=0, world_size=1)),
    ("init", lambda d, g: d.init_process_group("gloo", store=d.HashStore(), rank=0, world_size=1)),
    ("initialised", lambda d, g: (d.is_initialized(), d.get_rank(), d.get_world_size())),
    ("destroyed", lambda d, g: (d.destroy_process_group(), d.is_initialized())),
    (
        "errors",
        lambda d, g: [
            list(dict.fromkeys(k.__name__ for k in kind.__mro__ if k.__name__.startswith(("Dist", "Queue"))))
            for kind in kinds(d)
        ],
    ),
]


def c(module: Any) -> Any:
    return module.distributed_c10d


def n(module: Any) -> int:
    return module.get_world_size()


def kinds(module: Any) -> list[type[Exception]]:
    return [
        module.DistError,
        module.DistBackendError,
        module.DistNetworkError,
        module.DistStoreError,
        module.QueueEmptyError,
    ]


def config(module: Any, backend: str) -> tuple[str, dict[str, str]]:
    made = module.BackendConfig(module.Backend(backend))
    return str(made), made.get_device_backend_map()


def keep(groups: dict[str, Any], name: str, group: Any) -> Any:
    groups[name] = group
    return group


def answer(module: Any, groups: dict[str, Any], ask: Ask) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of what a later torch than the installed one deprecates
            return plain(module, ask(module, groups))
    except Exception as error:  # of whatever class: that is what is compared
        if module is dist and not isinstance(error, ShimError):
            raise
        return error


def plain(module: Any, value: Any) -> Any:
    """Return *value* with what can be compared in place of groups."""
    if isinstance(value, module.ProcessGroup):
        return value.rank(), value.size(), module.get_process_group_ranks(value), value.group_desc
    if isinstance(value, (list, tuple)):
        return type(value)(plain(module, one) for one in value)
    return value


def assert_same(name: str, mine: Any, real: Any) -> None:
    if isinstance(real, Exception):
        assert isinstance(mine, Exception), f"{name}: torch raised {real!r}, ours gave {mine!r}"
        assert isinstance(mine, type(real)), f"{name}: torch raised {real!r}, ours {mine!r}"
    else:
        assert mine == real, f"{name}: torch {real!r}, ours {mine!r}"


@pytest.mark.ranks(2, 3)
@pytest.mark.differential("torch", calls=len(GROUPS))
@pytest.mark.filterwarnings(
    "ignore:.*_get_pg_default_device:UserWarning",
    "ignore:.*_get_global_rank:FutureWarning",
    "ignore:Multiple backends are registered:UserWarning",
)
def test_groups(rank: int, world_size: int, tmp_path: Path) -> None:
    answers = []
    for module in (dist, torch.distributed):
        where = f"file://{tmp_path / module.__name__}"
        module.init_process_group("gloo", init_method=where, rank=rank, world_size=world_size)
        groups: dict[str, Any] = {}
        try:
            answers.append([answer(module, groups, ask) for _, ask in GROUPS])
            module.barrier()
        finally:
            module.destroy_process_group()
    for (name, _), mine, real in zip(GROUPS, *answers, strict=True):
        if name in DIFFERENT:
            instead, why = DIFFERENT[name]
            assert isinstance(mine, instead), why
        else:
            assert_same(name, mine, real)


@pytest.mark.differential("torch", calls=len(LONELY))
def test_without_other_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("MASTER_", "TORCH", "LOCAL_RANK"))]:
        monkeypatch.delenv(name)
    if registry.views():  # of a world that another test has closed without this frontend
        dist.destroy_process_group()
    answers = []
    for module in (dist, torch.distributed):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning, message=".*evice")
            warnings.filterwarnings("ignore", category=UserWarning, message=".*are not known")
            answers.append([answer(module, {}, ask) for _, ask in LONELY])
    for (name, _), mine, real in zip(LONELY, *answers, strict=True):
        assert_same(name, mine, real)
