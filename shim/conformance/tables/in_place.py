"""What the tables ask of APIs whose functions write to the tensors that they are given: torch's, Paddle's and mint's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from shim.conformance import oracle
from shim.conformance.assertions import assert_returned
from shim.conformance.kinds import TensorKind
from shim.conformance.oracle import Array
from shim.conformance.tables.cells import Call
from shim.conformance.tables.checks import Check, combined, everyone, exchange, numbers, reduce_ops_of, refusal, waited

CONCATENATED, STACKED, WITHOUT_DIMENSIONS, LIST = "concatenated", "stacked", "without dimensions", "list"


class InPlaceApi:
    """The cells of one API. A subclass says how its functions are called and what they return, and has what it alone has.

    ``gathering`` are the functions that gather into one tensor, and ``scattering`` those that reduce and scatter, each with the forms
    that they take. ``all_to_all_single`` takes the splits of its input before those of its output where it ``sends_first``. A gather
    into a list ``fills_lists`` that are empty. Where it ``asks_all``, ranks that are not root have to pass lists too.
    """

    dist: ClassVar[Any]
    ops: ClassVar[Mapping[str, Any]]  # reduce ops, by the oracle's name
    gathering: ClassVar[Sequence[tuple[Callable[..., Any], Sequence[str]]]]
    scattering: ClassVar[Sequence[tuple[Callable[..., Any], Sequence[str]]]]
    all_to_all: Callable[..., Any]
    all_to_all_single: Callable[..., Any]
    done: Callable[[Any], Any]  # raises unless a blocking call returned what it is to
    sends_first = False
    fills_lists = False
    asks_all = False

    def calls(self) -> dict[str, Call]:
        """Return the calls of the table of operations, by row."""
        return {
            "all_reduce": self._all_reduce,
            "broadcast": self._broadcast,
            "all_gather (list)": self._all_gather,
            "all_gather_into_tensor": self._all_gather_into_tensor,
            "reduce": self._reduce,
            "reduce_scatter, list and tensor": self._reduce_scatter,
            "all_to_all (list)": self._all_to_all,
            "all_to_all_single": self._all_to_all_single,
            "gather and scatter": self._gather_and_scatter,
            "send and recv": self._send_and_recv,
            "batch_isend_irecv": self._batch_isend_irecv,
            "barrier": self._barrier,
            "all_gather_object": self._all_gather_object,
            "other object collectives": self._other_objects,
            "init_process_group": self._init,
        }

    def enter(self, rank: int, size: int) -> None:
        """Enter the world again."""
        self.dist.init_process_group()

    def source(self, peer: int) -> int:
        """Return what receiving from *peer* returns."""
        return peer

    def _outputs(
        self, tensors: TensorKind, size: int, shape: Sequence[int] = (2, 3), dtype: str = "float32"
    ) -> list[Any]:
        """Return a list to gather into."""
        return [] if self.fills_lists else [tensors.blank(shape, dtype) for _ in range(size)]

    def _all_reduce(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        for op, reduce_op in self.ops.items():
            tensor = tensors.make(numbers(rank))
            self.done(self.dist.all_reduce(tensor, reduce_op))
            yield Check(f"all_reduce {op}", tensors.read(tensor), combined(everyone(size), op))

    def _broadcast(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        for root in range(size):
            tensor = tensors.make(numbers(rank))
            self.done(self.dist.broadcast(tensor, root))
            yield Check(f"broadcast from {root}", tensors.read(tensor), numbers(root))

    def _all_gather(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        outputs = self._outputs(tensors, size)
        self.done(self.dist.all_gather(outputs, tensors.make(numbers(rank))))
        yield Check("all_gather", tensors.read_all(outputs), everyone(size))

    def _all_gather_into_tensor(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        expected = {
            CONCATENATED: oracle.joined(everyone(size)),
            STACKED: np.stack(everyone(size)),
            WITHOUT_DIMENSIONS: np.stack(everyone(size, ())),
        }
        for function, forms in self.gathering:
            for form in forms:
                output = tensors.blank(expected[form].shape)
                shape = () if form == WITHOUT_DIMENSIONS else (2, 3)
                self.done(function(output, tensors.make(numbers(rank, shape))))
                yield Check(f"{function.__name__} into a tensor, {form}", tensors.read(output), expected[form])

    def _reduce(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        for root in range(size):
            for op, reduce_op in self.ops.items():
                tensor = tensors.make(numbers(rank))
                self.done(self.dist.reduce(tensor, root, reduce_op))
                expected = combined(everyone(size), op) if rank == root else numbers(rank)
                yield Check(f"reduce {op} to {root}", tensors.read(tensor), expected)

    def _reduce_scatter(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        everything = everyone(size, (size, 2))
        for op, reduce_op in self.ops.items():
            expected = combined([whole[rank] for whole in everything], op)
            for function, forms in self.scattering:
                for form in forms:
                    whole = everything[rank].reshape(-1) if form == CONCATENATED else everything[rank]
                    output = tensors.blank((2,))
                    self.done(function(output, (tensors.make_all if form == LIST else tensors.make)(whole), reduce_op))
                    yield Check(f"{function.__name__} {op}, {form}", tensors.read(output), expected)

    def _all_to_all(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        for form in ("equal", "unequal"):
            parts, expected = exchange(rank, size, form)
            outputs = [tensors.blank(part.shape) for part in expected]
            self.done(self.all_to_all(outputs, tensors.make_all(parts)))
            yield Check(f"all_to_all {form}", tensors.read_all(outputs), expected)

    def _all_to_all_single(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        for form in ("equal", "unequal"):
            parts, expected = exchange(rank, size, form)
            sent, received = [len(part) for part in parts], [len(part) for part in expected]
            splits = [] if form == "equal" else [sent, received] if self.sends_first else [received, sent]
            output = tensors.blank((sum(received), 3))
            self.done(self.all_to_all_single(output, tensors.make(oracle.joined(parts)), *splits))
            yield Check(f"all_to_all_single {form}", tensors.read(output), oracle.joined(expected))

    def _gather_and_scatter(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        for root in range(size):
            outputs = self._outputs(tensors, size) if rank == root or self.asks_all else None
            self.done(self.dist.gather(tensors.make(numbers(rank)), outputs, root))
            if outputs is not None and rank == root:
                yield Check(f"gather to {root}", tensors.read_all(outputs), everyone(size))
            parts = tensors.make_all(numbers(rank, (size, 3))) if rank == root or self.asks_all else None
            output = tensors.blank((3,))
            self.done(self.dist.scatter(output, parts, root))
            yield Check(f"scatter from {root}", tensors.read(output), numbers(root, (size, 3))[rank])

    def _received(self, receive: Callable[..., Any], thing: Any, peer: int) -> Iterator[Check]:
        """Receive *thing* from *peer* and check what is returned."""
        yield Check(f"what {receive.__name__} returns", receive(thing, peer), self.source(peer))

    def _send_and_recv(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        following, previous = (rank + 1) % size, (rank - 1) % size
        tensor = tensors.make(numbers(rank))
        if rank > 0:
            yield from self._received(self.dist.recv, tensor, previous)
        if rank < size - 1:
            self.done(self.dist.send(tensor, following))
        yield Check("send and recv from rank to rank", tensors.read(tensor), numbers(0))
        output = tensors.blank((2, 3))
        for work in (self.dist.isend(tensors.make(numbers(rank)), following), self.dist.irecv(output, previous)):
            assert_returned(work).wait()
        yield Check("isend and irecv in a ring", tensors.read(output), numbers(previous))

    def _batch_isend_irecv(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        following, previous = (rank + 1) % size, (rank - 1) % size
        output = tensors.blank((2, 3))
        sends_first = [
            self.dist.P2POp(self.dist.isend, tensors.make(numbers(rank)), following),
            self.dist.P2POp(self.dist.irecv, output, previous),
        ]
        for work in assert_returned(self.dist.batch_isend_irecv(sends_first)):
            work.wait()
        yield Check("batch_isend_irecv", tensors.read(output), numbers(previous))

    def _barrier(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        def all_times(time: Array) -> list[Array]:
            outputs = self._outputs(tensors, size, time.shape, "float64")
            self.dist.all_gather(outputs, tensors.make(time))
            return tensors.read_all(outputs)

        yield waited(rank, self.dist.barrier, all_times)

    def _all_gather_object(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        found: list[Any] = [None] * size
        self.dist.all_gather_object(found, {"rank": rank})
        yield Check("all_gather_object", found, [{"rank": one} for one in range(size)])

    def _other_objects(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        for root in range(size):
            objects: list[Any] = [f"of rank {rank}", {rank}]
            self.dist.broadcast_object_list(objects, root)
            yield Check(f"broadcast_object_list from {root}", objects, [f"of rank {root}", {root}])
            yield from self._gathered_objects(rank, size, root)
            mine: list[Any] = [None]
            given = [f"{root} to {one}" for one in range(size)] if rank == root or self.asks_all else None
            self.dist.scatter_object_list(mine, given, root)
            yield Check(f"scatter_object_list from {root}", mine, [f"{root} to {rank}"])
        if not hasattr(self.dist, "send_object_list"):  # an older release has it not
            return
        passed: list[Any] = [{"rank": rank}, rank]
        if rank > 0:
            yield from self._received(self.dist.recv_object_list, passed, rank - 1)
        if rank < size - 1:
            self.dist.send_object_list(passed, rank + 1)
        yield Check("send_object_list and recv_object_list", passed, [{"rank": 0}, 0])

    def _gathered_objects(self, rank: int, size: int, root: int) -> Iterator[Check]:
        found: list[Any] | None = [None] * size if rank == root else None
        self.dist.gather_object({"rank": rank}, found, root)
        if found is not None:
            yield Check(f"gather_object to {root}", found, [{"rank": one} for one in range(size)])

    def _init(self, tensors: TensorKind, rank: int, size: int) -> Iterator[Check]:
        self.dist.destroy_process_group()
        yield Check("is_initialized after destroy_process_group", self.dist.is_initialized(), False)
        self.enter(rank, size)
        yield Check("get_rank and get_world_size", (self.dist.get_rank(), self.dist.get_world_size()), (rank, size))
        yield from self._all_gather(tensors, rank, size)

    def of_dtype(self, tensors: TensorKind, rank: int, size: int, dtype: str) -> Iterator[Check]:
        """Reduce and move tensors of *dtype* in every way."""
        everything, mine = everyone(size, (size, 2), dtype), numbers(rank, (size, 2), dtype)
        for op in reduce_ops_of(dtype):
            tensor = tensors.make(mine)
            self.dist.all_reduce(tensor, self.ops[op])
            yield Check(f"all_reduce {op} of {dtype}", tensors.read(tensor), combined(everything, op))
            output = tensors.blank((2,), dtype)
            self.dist.reduce_scatter(output, tensors.make_all(mine), self.ops[op])
            expected = combined([whole[rank] for whole in everything], op)
            yield Check(f"reduce_scatter {op} of {dtype}", tensors.read(output), expected)
        if not reduce_ops_of(dtype):
            yield refusal("all_reduce", dtype, self.dist.all_reduce, tensors.make(mine))
            parts = tensors.make_all(mine)
            yield refusal("reduce_scatter", dtype, self.dist.reduce_scatter, tensors.blank((2,), dtype), parts)
        tensor = tensors.blank((size, 2), dtype)
        self.all_to_all_single(tensor, tensors.make(mine))
        exchanged = np.stack([whole[rank] for whole in everything])
        yield Check(f"all_to_all_single of {dtype}", tensors.read(tensor), exchanged)
        yield from self._moves(tensors, rank, everything, dtype)

    def _moves(self, tensors: TensorKind, rank: int, everything: list[Array], dtype: str) -> Iterator[Check]:
        size, shape, mine = len(everything), everything[0].shape, everything[rank]
        tensor = tensors.make(mine)
        self.dist.broadcast(tensor, size - 1)
        yield Check(f"broadcast of {dtype}", tensors.read(tensor), everything[-1])
        outputs = self._outputs(tensors, size, shape, dtype)
        self.dist.all_gather(outputs, tensors.make(mine))
        yield Check(f"all_gather of {dtype}", tensors.read_all(outputs), everything)
        found = self._outputs(tensors, size, shape, dtype) if rank == 0 else None
        self.dist.gather(tensors.make(mine), found, 0)
        if found is not None:
            yield Check(f"gather of {dtype}", tensors.read_all(found), everything)
        tensor = tensors.blank(shape, dtype)
        self.dist.scatter(tensor, tensors.make_all(everything) if rank == 0 else None, 0)
        yield Check(f"scatter of {dtype}", tensors.read(tensor), mine)
        work = self.dist.isend(tensors.make(mine), (rank + 1) % size)
        self.dist.recv(tensor, (rank - 1) % size)
        assert_returned(work).wait()
        yield Check(f"isend and recv of {dtype}", tensors.read(tensor), everything[rank - 1])
