"""The collective APIs that a port goes between, and the modules in which each has its names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Api:
    """One framework's API at one version.

    ``main`` is the module whose names a port writes where it can. ``same`` maps a module to the one under whose path the table has its names:
    many are reachable by several paths. ``others`` are modules of collectives too, ``names`` are of modules
    that have much else.
    """

    name: str
    framework: str
    record: str
    frontend: str
    main: str
    same: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def canonical(self, name: str) -> str:
        """Return the path under which the table has *name*, a dotted path of this framework or of one of the frontends."""
        if name.startswith(f"{self.frontend}."):
            name = name.removeprefix(f"{self.frontend}.")
            name = f"{self.framework}.{name}"
        for module, where in self.same:
            if name == module or name.startswith(f"{module}."):
                return where + name.removeprefix(module)
        return name

    def is_collective(self, name: str) -> bool:
        """Tell whether the canonical *name* is a module or a name of this API, or is below one."""
        return any(name == module or name.startswith(f"{module}.") for module in (self.main, *self.others, *self.names))

    def written(self, name: str, native: bool) -> str:
        """Return the path to write for the canonical *name*: the framework's own if *native*, and the frontend's if not."""
        return name if native else self.frontend + name.removeprefix(self.framework)


_PADDLE_SAME = (
    (
        "paddle.distributed.communication.stream.reduce_scatter.reduce_scatter",
        "paddle.distributed.stream.reduce_scatter",
    ),
    ("paddle.distributed.communication.stream", "paddle.distributed.stream"),
    ("paddle.distributed.communication.group.Group", "paddle.distributed.collective.Group"),
    ("paddle.distributed.communication.group", "paddle.distributed"),
    ("paddle.distributed.communication.reduce", "paddle.distributed"),
    ("paddle.distributed.communication.reduce_scatter", "paddle.distributed"),
    ("paddle.distributed.communication.batch_isend_irecv", "paddle.distributed"),
    ("paddle.distributed.communication", "paddle.distributed"),
    ("paddle.distributed.collective.Group", "paddle.distributed.collective.Group"),
    ("paddle.distributed.collective._get_default_group", "paddle.distributed.collective._get_default_group"),
    ("paddle.distributed.collective._get_global_group", "paddle.distributed.collective._get_default_group"),
    ("paddle.distributed.collective", "paddle.distributed"),
    ("paddle.distributed.parallel", "paddle.distributed"),
)

_PADDLE_NAMES = ("paddle.DataParallel", "paddle.io.DistributedBatchSampler", "paddle.nn.SyncBatchNorm")

_MINDSPORE_SAME = (
    ("mindspore.communication.management", "mindspore.communication"),
    ("mindspore.mint.distributed.distributed", "mindspore.mint.distributed"),
    ("mindspore.ops.communication", "mindspore.mint.distributed"),  # the same functions
    ("mindspore.ops.operations.comm_ops", "mindspore.ops"),
    ("mindspore.ops.operations", "mindspore.ops"),
)

APIS = {
    api.name: api
    for api in (
        Api(
            "torch",
            "torch",
            "torch-2.15.0",
            "shim.frontends.torch",
            "torch.distributed",
            (
                ("torch.distributed.distributed_c10d", "torch.distributed"),
                ("torch.distributed.reduce_op", "torch.distributed.ReduceOp"),
            ),
            names=(
                "torch.multiprocessing.spawn",
                "torch.nn.SyncBatchNorm",
                "torch.nn.parallel.DistributedDataParallel",
                "torch.nn.parallel.distributed",
                "torch.utils.data.DistributedSampler",
                "torch.utils.data.distributed",
            ),
        ),
        *(
            Api(
                f"paddle_{version[0]}",
                "paddle",
                f"paddle-{version}",
                f"shim.frontends.paddle_{version[0]}",
                "paddle.distributed",
                _PADDLE_SAME,
                names=_PADDLE_NAMES,
            )
            for version in ("2.6.2", "3.3.1")
        ),
        Api(
            "mindspore",
            "mindspore",
            "mindspore-2.10.0",
            "shim.frontends.mindspore",
            "mindspore.mint.distributed",
            _MINDSPORE_SAME,
            ("mindspore.communication", "mindspore.communication.comm_func"),
            (
                "mindspore.nn.DistributedGradReducer",
                "mindspore.nn.SyncBatchNorm",
                "mindspore.ops.ReduceOp",
                "mindspore.set_auto_parallel_context",
            ),
        ),
    )
}
