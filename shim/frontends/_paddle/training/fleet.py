"""What ``paddle.distributed.fleet`` does for data parallelism, and what it knows from the launcher; the same in every version of paddle.

paddle is imported when a program begins.
"""

from __future__ import annotations

import copy
import importlib
import os
from typing import Any

from shim.core.callers import Caller
from shim.core.job.launchers.paddle import paddle_endpoints
from shim.core.job.variables import Variables
from shim.errors import ArgumentError, StateError, UnsupportedError
from shim.frontends import _absent
from shim.frontends._paddle.collectives.of_both import barrier
from shim.frontends._paddle.errors import ArgumentTypeError, GroupMissingError, paddle_function
from shim.frontends._paddle.training import layer_class
from shim.frontends._paddle.world.options import enter, identity, rank_in, size_of

_INIT = paddle_function("fleet.init")
_MODEL = paddle_function("fleet.distributed_model", errors={StateError: GroupMissingError})
_OPTIMIZER = paddle_function("fleet.distributed_optimizer", errors={StateError: GroupMissingError})
_QUESTION = paddle_function("fleet.fleet")
_ENDPOINTS = paddle_function("fleet.worker_endpoints")
_SERVERS = "combines in programs with parameter servers alone"
_SHARD = paddle_function("fleet.util.get_file_shard")

# What of a strategy is honoured; hybrid_configs are looked at by themselves.
_HONOURED = ("find_unused_parameters", "fuse_grad_size_in_MB", "hybrid_configs", "last_comm_group_size_MB")
_INSTEAD = (
    "Only data parallelism is there: write the rest with the collectives, or run the program without substitution."
)


class Fleet:
    """The data parallelism that a process has begun, with the strategy that it has given; the rest is answered before ``init``, too.

    Deviates: it asks every launcher's environment, not only paddle's.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    """

    def __init__(self) -> None:
        self._strategy: Any = None

    def init(
        self, role_maker: Any = None, is_collective: Any = False, strategy: Any = None, log_level: int | str = "INFO"
    ) -> Fleet:
        """Make this process a rank of the world, and keep *strategy*."""
        if role_maker is not None:
            raise _INIT.explain(
                UnsupportedError("role_maker must be None, which asks the world who this is\n" + _INSTEAD)
            )
        if not isinstance(is_collective, bool):
            raise _INIT.explain(ArgumentError(f"is_collective must be a bool, got {is_collective!r}"))
        if not is_collective:
            raise _INIT.explain(UnsupportedError("is_collective must be True: there are no parameter servers"))
        if not importlib.import_module("paddle").in_dynamic_mode():
            raise _INIT.explain(UnsupportedError("the program must be in dynamic mode\n" + _INSTEAD))
        paddles = importlib.import_module("paddle.distributed.fleet")
        paddles.set_log_level(log_level)
        chosen = paddles.DistributedStrategy() if strategy is None else copy.deepcopy(strategy)
        _check(_INIT, chosen, size_of(_INIT, None))
        enter(_INIT)
        self._strategy = chosen
        return self

    def distributed_model(self, model: Any) -> Any:
        """Return *model* in a DataParallel with the strategy's buffers."""
        strategy = self._begun(_MODEL)
        pipelines = importlib.import_module("paddle.distributed.fleet.meta_parallel")
        if isinstance(model, pipelines.PipelineLayer):
            raise _MODEL.explain(UnsupportedError("model must be no PipelineLayer\n" + _INSTEAD))
        return layer_class(__name__, "DataParallel")(
            model,
            comm_buffer_size=strategy.fuse_grad_size_in_MB,
            last_comm_buffer_size=strategy.last_comm_group_size_MB,
            find_unused_parameters=strategy.find_unused_parameters,
        )

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """Return *optimizer*, as gradients are averaged when it takes its step, and keep *strategy* in place of the one before."""
        self._begun(_OPTIMIZER)
        if strategy is not None:
            _check(_OPTIMIZER, strategy, size_of(_OPTIMIZER, None))
            self._strategy = copy.deepcopy(strategy)
        return optimizer

    def worker_num(self) -> int:
        """Return the number of ranks."""
        return size_of(_QUESTION, None)

    def worker_index(self) -> int:
        """Return this process's rank."""
        return rank_in(_QUESTION, None)

    server_index = worker_index  # as paddle answers a worker

    def is_first_worker(self) -> bool:
        """Tell whether this process is rank 0."""
        return self.worker_index() == 0

    def is_worker(self) -> bool:
        """Tell whether this process is a rank, which every process is where there are no parameter servers."""
        return True

    def is_server(self) -> bool:
        """Tell whether this process is a parameter server, which none is."""
        return False

    is_coordinator = is_server

    def node_num(self) -> int:
        """Return the number of hosts."""
        return _number_of_hosts()

    def local_rank(self) -> str | None:
        """Return this rank's number among those of its host, as a text; None where no launcher told."""
        told = identity(_QUESTION).local_rank
        return os.environ.get("PADDLE_RANK_IN_NODE", None if told is None else str(told))

    def local_device_ids(self) -> str | None:
        """Return PADDLE_LOCAL_DEVICE_IDS."""
        return os.environ.get("PADDLE_LOCAL_DEVICE_IDS")

    def world_device_ids(self) -> str | None:
        """Return PADDLE_WORLD_DEVICE_IDS."""
        return os.environ.get("PADDLE_WORLD_DEVICE_IDS")

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Return the ranks' addresses as a list, or with *to_string* as one text with commas."""
        return ",".join(_endpoints()) if to_string else _endpoints()

    def server_num(self) -> int:
        """Return the number of parameter servers, 0."""
        return 0

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Return the parameter servers' addresses, of which there are none."""
        return "" if to_string else []

    def barrier_worker(self) -> None:
        """Wait for all ranks."""
        barrier()

    def __getattr__(self, name: str) -> Any:
        _absent.refuse_name("shim.frontends.paddle_3.distributed.fleet", name)

    def _begun(self, caller: Caller) -> Any:
        if self._strategy is None:
            raise caller.explain(StateError("needs fleet.init(is_collective=True) before it"))
        return self._strategy


class UtilBase:
    """What ``fleet.util`` does with the ranks of the world.

    Deviates: all_reduce and all_gather raise UnsupportedError; in a program without parameter servers, paddle's return their input.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/UtilBase_en.html
    """

    def get_file_shard(self, files: list[str]) -> list[str]:
        """Return this rank's part of *files*; the first ranks have one more where they cannot be divided."""
        if not isinstance(files, list):
            raise _SHARD.explain(ArgumentTypeError(f"files must be a list, got {files!r}"))
        size, rank = fleet.worker_num(), fleet.worker_index()
        least, more = divmod(len(files), size)
        begin = rank * least + min(rank, more)
        return files[begin : begin + least + (rank < more)]

    get_heter_file_shard = get_file_shard

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Print *message* on rank *rank_id*."""
        if fleet.worker_index() == rank_id:
            print(message)  # noqa: T201  # as it says

    def barrier(self, comm_world: str = "worker") -> None:
        """Wait for all ranks, of which *comm_world* says that they are workers."""
        if comm_world != "worker":
            raise _refused("barrier", f"comm_world must be 'worker', got {comm_world!r}", "There are no servers.")
        barrier()

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Any:
        """Refuse to combine *input* by *mode* over *comm_world*."""
        raise _refused("all_reduce", _SERVERS, "Call paddle.distributed.all_reduce.", input, mode, comm_world)

    def all_gather(self, input: Any, comm_world: str = "worker") -> Any:
        """Refuse to gather *input* over *comm_world*."""
        raise _refused("all_gather", _SERVERS, "Call paddle.distributed.all_gather_object.", input, comm_world)


fleet = Fleet()
util = UtilBase()


def _refused(name: str, why: str, hint: str, *given: Any) -> Exception:
    del given
    return paddle_function(f"fleet.util.{name}").explain(UnsupportedError(f"{why}\n{hint}"))


def _endpoints() -> list[str]:
    told = paddle_endpoints(Variables(os.environ))
    if not told and fleet.worker_num() > 1:
        raise _ENDPOINTS.explain(
            UnsupportedError("needs PADDLE_TRAINER_ENDPOINTS, which paddle's launcher and `shim run` set")
        )
    return (told or "127.0.0.1:6170").split(",")  # as paddle answers a process without a launcher


def _number_of_hosts() -> int:
    job = identity(_QUESTION)
    endpoints = (paddle_endpoints(Variables(os.environ)) or "").split(",")
    hosts = set(job.hosts) or {one.rpartition(":")[0] for one in endpoints}
    return len(hosts) if len(hosts) > 1 or not job.local_size else -(-job.size // job.local_size)


def _check(caller: Caller, strategy: Any, world_size: int) -> None:
    """Refuse what *strategy* asks for beyond data parallelism over a world of *world_size* ranks."""
    usual = type(strategy)()
    for field in strategy.strategy.DESCRIPTOR.fields:
        if field.name not in _HONOURED:
            _refuse_unusual(
                caller, field.name, getattr(strategy.strategy, field.name), getattr(usual.strategy, field.name)
            )
    for name, value in strategy.hybrid_configs.items():
        if name != "dp_degree":
            _refuse_unusual(caller, f"hybrid_configs[{name!r}]", value, usual.hybrid_configs[name])
        elif value not in (-1, world_size):
            raise caller.explain(
                ArgumentError(f"strategy.hybrid_configs['dp_degree'] must be -1 or {world_size}, got {value}")
            )


def _refuse_unusual(caller: Caller, name: str, value: Any, usual: Any) -> None:
    wanted, given = (
        str(one).strip() or "empty" for one in (usual, value)
    )  # some are messages, equal by their texts alone
    if given != wanted:
        raise caller.explain(UnsupportedError(f"strategy.{name} must be {wanted}, got {given}\n{_INSTEAD}"))
