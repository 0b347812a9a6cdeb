"""What is done both with MindSpore itself and with its frontend here, by the same ranks: a name and a function of each case.

A case is a function of a ``Framework`` that returns what can be compared: numbers, text and lists of them. What stops or hangs
MindSpore 2.10 on a CPU is not among them: reduce, the forms with split sizes, all-to-all and reduce-scatter, which have no
kernel there; irecv before isend, which waits; all of comm_func but its checks; groups of which the caller is no member; names of groups that there are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore
import numpy as np

OF_ALL_REDUCE = ("int8", "int16", "int32", "int64", "float16", "bfloat16", "float32")
OF_ALL_GATHER = (
    "uint8",
    "int8",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)


@dataclass(frozen=True)
class Framework:
    """The modules of one of the two, and the caller's place, which is the same in both. ``pair`` are ranks 0 and 2."""

    modules: dict[str, Any]
    rank: int
    size: int
    pair: str
    port: int

    def __getattr__(self, name: str) -> Any:
        return self.modules[name]


def tensor(rank: int, shape: Any = (2, 3), dtype: str = "float32") -> Any:
    numbers = np.arange(int(np.prod(shape))).reshape(shape) + 1 + 10 * rank
    return mindspore.Tensor(numbers.astype("float32")).astype(getattr(mindspore, dtype))


def told(value: Any) -> Any:
    """Return *value* as it can be compared."""
    if isinstance(value, mindspore.Tensor):
        return [str(value.dtype), list(value.shape), value.astype(mindspore.float32).asnumpy().tolist()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(told, value)]
    return value if isinstance(value, (str, int, float, type(None))) else type(value).__name__


def waited(handle: Any) -> list[Any]:
    return [type(handle).__name__, handle.wait(), handle.wait()]


CASES: dict[str, Callable[[Framework], Any]] = {}
DIFFERENT: dict[str, tuple[str, str]] = {}  # "returns", or the class that ours raises instead, and why


RAISES: dict[str, str] = {}  # the built-in class that MindSpore raises; it raises nothing in all other cases


def case(
    name: str,
    function: Callable[[Framework], Any],
    different: tuple[str, str] | None = None,
    raises: str | None = None,
) -> None:
    assert name not in CASES
    CASES[name] = function
    if raises is not None:
        RAISES[name] = raises
    if different is not None:
        DIFFERENT[name] = different


def written(call: Callable[[Any], Any], *tensors: Any) -> Any:
    """Return what *call* returns, or waits for, and what is then in *tensors*."""
    returned = call(*tensors)
    if type(returned).__name__ == "CommHandle":
        returned = waited(returned)
    return told([returned, list(tensors)])


def scattered(rank: int, size: int) -> list[Any]:
    return [tensor(10 * rank + to) for to in range(size)]


for module in ("mint", "ops"):
    for op in ("sum", "prod", "min", "max", "avg"):
        case(
            f"{module}.all_reduce {op}",
            lambda f, m=module, op=op: written(lambda t: f.modules[m].all_reduce(t, op), tensor(f.rank)),
        )
    for background in (False, True):
        how = " async" if background else ""
        case(
            f"{module}.all_gather{how}",
            lambda f, m=module, b=background: written(
                lambda t, *out: f.modules[m].all_gather(list(out), t, async_op=b), tensor(f.rank), *scattered(9, f.size)
            ),
        )
        for root in range(3):
            case(
                f"{module}.broadcast from {root}{how}",
                lambda f, m=module, b=background, root=root: written(
                    lambda t: f.modules[m].broadcast(t, root, async_op=b), tensor(f.rank)
                ),
            )
            case(
                f"{module}.gather to {root}{how}",
                lambda f, m=module, b=background, root=root: written(
                    lambda t, *out: f.modules[m].gather(t, list(out), root, async_op=b),
                    tensor(f.rank),
                    *scattered(9, f.size),
                )[1 : None if f.rank == root else 2],
            )
            case(
                f"{module}.scatter from {root}{how}",
                lambda f, m=module, b=background, root=root: written(
                    lambda t: f.modules[m].scatter(t, scattered(f.rank, f.size), root, async_op=b), tensor(9)
                ),
            )
        case(
            f"{module}.barrier{how}",
            lambda f, m=module, b=background: written(lambda: f.modules[m].barrier(async_op=b)),
        )
    case(
        f"{module}.all_reduce async",
        lambda f, m=module: written(lambda t: f.modules[m].all_reduce(t, async_op=True), tensor(f.rank)),
    )
    case(f"{module}.all_reduce of ()", lambda f, m=module: written(f.modules[m].all_reduce, tensor(f.rank, ())))
    case(
        f"{module}.all_gather into a tuple",
        lambda f, m=module: written(
            lambda t, *out: f.modules[m].all_gather(out, t), tensor(f.rank), *scattered(9, f.size)
        ),
        ("returns", "MindSpore's Python takes a tuple, as everywhere else, and its operator does not"),
        raises="TypeError",
    )
    for dtype in OF_ALL_REDUCE:
        case(
            f"{module}.all_reduce of {dtype}",
            lambda f, m=module, d=dtype: written(f.modules[m].all_reduce, tensor(f.rank, 3, d)),
        )
    for dtype in OF_ALL_GATHER:
        case(
            f"{module}.all_gather of {dtype}",
            lambda f, m=module, d=dtype: written(
                lambda t, *out: f.modules[m].all_gather(list(out), t),
                *[tensor(9 * (i > 0) + f.rank * (i == 0), 3, d) for i in range(4)],
            ),
        )

    def in_pair(name: str, call: Callable[[Any, str, int], Any], m: str = module) -> None:
        """Add a case for ranks 0 and 2, which are a group."""
        case(f"{m}.{name} in a group", lambda f: call(f.modules[m], f.pair, f.rank) if f.rank != 1 else "no member")

    in_pair("all_reduce", lambda m, g, r: written(lambda t: m.all_reduce(t, group=g), tensor(r)))
    in_pair("broadcast", lambda m, g, r: written(lambda t: m.broadcast(t, 2, g), tensor(r)))
    in_pair(
        "all_gather", lambda m, g, r: written(lambda t, *o: m.all_gather(list(o), t, g), tensor(r), *scattered(9, 2))
    )
    in_pair(
        "gather",
        lambda m, g, r: written(lambda t, *o: m.gather(t, list(o), 2, g), tensor(r), *scattered(9, 2))[
            1 : 2 + (r == 2)
        ],
    )
    in_pair("scatter", lambda m, g, r: written(lambda t: m.scatter(t, scattered(r, 2), 2, g), tensor(9)))
    in_pair("barrier", lambda m, g, r: written(lambda: m.barrier(g)))
    in_pair(
        "names", lambda m, g, r: [m.get_rank(g), m.get_world_size(g), m.get_process_group_ranks(g), m.get_backend(g)]
    )
    in_pair("ranks", lambda m, g, r: [m.get_global_rank(g, 1), m.get_group_rank(g, 2), m.new_group([2, 0]) == g])
    in_pair("objects", lambda m, g, r: listed(lambda x: m.all_gather_object(x, {"rank": r}, g), [None, None]))


def listed(call: Callable[[list[Any]], Any], given: list[Any]) -> Any:
    """Return what *call* returns, and what is then in *given*."""
    return [call(given), list(map(repr, given))]


def sent(module: Any, rank: int, returning: str) -> Any:
    """Send from every rank to the next; rank 0 sends first."""
    before, after = (rank - 1) % 3, (rank + 1) % 3
    received, mine = tensor(9), tensor(rank)
    if returning == "isend":
        results = [module.isend(mine, after), module.irecv(received, before)]
        return told([*map(waited, results), received])
    first, second = (lambda: module.send(mine, after)), (lambda: module.recv(received, before))
    results = [first(), second()] if rank == 0 else [second(), first()][::-1]
    return told([*results, received])


for module in ("mint", "ops"):
    case(f"{module}.send and recv", lambda f, m=module: sent(f.modules[m], f.rank, "send"))
    case(f"{module}.isend and irecv", lambda f, m=module: sent(f.modules[m], f.rank, "isend"))
    case(
        f"{module}.all_gather_object",
        lambda f, m=module: listed(
            lambda x: f.modules[m].all_gather_object(x, {"rank": f.rank, "text": "x" * f.rank}), [None] * 3
        ),
    )
    for root in range(3):
        case(
            f"{module}.broadcast_object_list from {root}",
            lambda f, m=module, root=root: listed(
                lambda x: f.modules[m].broadcast_object_list(x, root), [f.rank, "a" * f.rank]
            ),
        )
        case(
            f"{module}.gather_object to {root}",
            lambda f, m=module, root=root: listed(
                lambda x: f.modules[m].gather_object([f.rank], x if f.rank == root else None, root), [None] * 3
            ),
        )
        case(
            f"{module}.scatter_object_list from {root}",
            lambda f, m=module, root=root: listed(
                lambda x: f.modules[m].scatter_object_list(x, [(f.rank, to) for to in range(3)], root),
                ["replaced", "kept"],
            ),
        )
    case(
        f"{module}.send_object_list",
        lambda f, m=module: {
            0: lambda: [f.modules[m].send_object_list([{"a": 1}, None, "text"], 2)],
            1: list,
            2: lambda: listed(f.modules[m].recv_object_list, [1, 2, 3]),
        }[f.rank](),
    )
    case(
        f"{module}.world",
        lambda f, m=module: [
            f.modules[m].get_rank(),
            f.modules[m].get_world_size(),
            f.modules[m].get_process_group_ranks(),
            f.modules[m].get_global_rank(None, 1),
            f.modules[m].get_group_rank(None, 2),
            f.modules[m].get_backend(),
            f.modules[m].get_backend("an mccl group"),
            f.modules[m].is_initialized(),
            f.modules[m].is_available(),
        ],
    )

case(
    "communication",
    lambda f: [
        f.communication.get_rank(),
        f.communication.get_group_size(),
        f.communication.get_local_rank(),
        f.communication.get_local_rank_size(),
        f.communication.get_process_group_ranks(),
    ],
)


_stores: list[
    Any
] = []  # until the process ends: while MindSpore's own is destroyed, its threads crash the process now and then


def store_of(f: Framework) -> Any:
    store = f.mint.TCPStore("127.0.0.1", f.port, is_master=True)
    other = f.ops.TCPStore("127.0.0.1", f.port)
    _stores.extend([store, other])
    store.set("key", "text")
    other.set("bytes", b"\0\1")
    values = [other.get("key").decode(), list(store.get("bytes")), store.add("number", 3), other.add("number", -5)]
    return [
        *values,
        store.get("number").decode(),
        other.delete_key("key"),
        store.delete_key("key"),
        store.host,
        store.port - f.port,
    ]


case("TCPStore", store_of)
