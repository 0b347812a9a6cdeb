"""Objects with ``weights_only``: what travels, what is refused, and that nothing that a message names is run."""

from __future__ import annotations

import collections
import io
import pickle
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch_world import assert_usable, world
from wrong_calls import assert_refused

import shim.frontends.torch.distributed as dist
from shim.errors import MismatchError, UnsupportedError
from shim.frontends.torch._restricted_objects import WEIGHTS

pytestmark = pytest.mark.newest

ran: list[int] = []  # the ranks whose traps have run here


class Trap:
    """Notes in the process that unpickles it whose it was."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __reduce__(self) -> tuple[Any, ...]:
        return ran.append, (self.rank,)


class Snare(Trap):
    def __reduce__(self) -> tuple[Any, ...]:
        return note, (self.rank,)


def note(rank: int) -> None:
    ran.append(rank)


def thing(rank: int) -> dict[str, Any]:
    return {"rank": rank, "more": [1.5, "x", b"y", None, {1, 2}, 2j], "tensor": torch.arange(rank * 100)}


def assert_thing(found: Any, rank: int) -> None:
    assert torch.equal(found["tensor"], torch.arange(rank * 100))
    assert {**found, "tensor": 0} == {**thing(rank), "tensor": 0}


@pytest.mark.ranks(3)
def test_what_is_allowed_travels_by_every_function(rank: int, world_size: int) -> None:
    with world():
        slots: list[Any] = [None] * world_size
        dist.all_gather_object(slots, thing(rank), weights_only=True)
        for other, found in enumerate(slots):
            assert_thing(found, other)
        slots = [None] * world_size
        dist.gather_object(thing(rank), slots if rank == 2 else None, 2, weights_only=True)
        for other, found in enumerate(slots if rank == 2 else ()):
            assert_thing(found, other)
        items = [thing(rank), rank]
        dist.broadcast_object_list(items, 1, weights_only=True)
        assert_thing(items[0], 1)
        assert items[1] == 1
        dist.scatter_object_list(items, [thing(5 + one) for one in range(3)] if rank == 0 else None, weights_only=True)
        assert_thing(items[0], 5 + rank)
        if rank == 0:
            assert dist.recv_object_list(items, 2, weights_only=True) == 2
            assert_thing(items[0], 2)
        elif rank == 2:
            dist.send_object_list([thing(2), "second"], 0, weights_only=True)


CALLS = {
    "all_gather": lambda rank, sent: dist.all_gather_object([None] * 2, sent if rank == 0 else 1, weights_only=True),
    "gather": lambda rank, sent: dist.gather_object(
        sent if rank == 0 else 1, [None] * 2 if rank == 1 else None, 1, weights_only=True
    ),
    "broadcast": lambda rank, sent: dist.broadcast_object_list([sent if rank == 0 else 1], weights_only=True),
    "scatter": lambda rank, sent: dist.scatter_object_list([None], [1, sent] if rank == 0 else None, weights_only=True),
    "messages": lambda rank, sent: (
        dist.recv_object_list([None], 0, weights_only=True)
        if rank
        else dist.send_object_list([sent], 1, weights_only=True)
    ),
}


@pytest.mark.ranks(2)
@pytest.mark.parametrize("name", CALLS)
def test_nothing_that_a_message_names_is_run(rank: int, world_size: int, name: str) -> None:
    with world():
        for sent in (Trap(7), Snare(7), [Snare(7)], np.ones(2)):
            if rank == 1 or name == "all_gather":
                with pytest.raises(pickle.UnpicklingError):
                    CALLS[name](rank, sent)
            else:
                CALLS[name](rank, sent)
            assert ran == []
            assert_usable(rank, world_size)
        slots: list[Any] = [None, None]
        dist.all_gather_object(slots, Snare(rank))  # the trap is one
        assert ran == [0, 1]
        ran.clear()


@pytest.mark.ranks(2)
def test_a_class_that_the_program_allows_travels(rank: int, world_size: int) -> None:
    with world(), torch.serialization.safe_globals([note]):
        dist.all_gather_object([None] * 2, Snare(rank), weights_only=True)
        assert ran == [0, 1]
        ran.clear()


@pytest.mark.ranks(3)
def test_all_ranks_must_pass_the_same(rank: int, world_size: int) -> None:
    with world():
        slots: list[Any] = ["kept"] * 3
        told = assert_refused(
            MismatchError, "disagree", lambda: dist.all_gather_object(slots, Snare(rank), weights_only=rank != 1)
        )
        assert "objects (weights_only)" in told
        assert (slots, ran) == (["kept"] * 3, [])
        for sends_weights in (False, True):
            if rank == 0:
                dist.send_object_list([{"plain": 1}], 1, weights_only=sends_weights)
            elif rank == 1:
                with pytest.raises(MismatchError, match="rank 0 sent objects in another format"):
                    dist.recv_object_list(slots[:1], 0, weights_only=not sends_weights)
            assert_usable(rank, world_size)


PLAIN = {"a": [1, 2.5, None, True, "text", b"bytes", bytearray(b"more")], "b": ({1, 2}, frozenset([3]), 4j)}


@pytest.mark.ranks(2)
def test_without_torch_plain_data_travels(rank: int, world_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with world():
        monkeypatch.delitem(sys.modules, "torch")
        slots: list[Any] = [None, None]
        dist.all_gather_object(slots, {**PLAIN, "rank": rank}, weights_only=True)
        assert slots == [{**PLAIN, "rank": 0}, {**PLAIN, "rank": 1}]
        with pytest.raises(TypeError if rank == 0 else MismatchError, match=r"Snare|weights_only allows plain data"):
            dist.all_gather_object(slots, Snare(0) if rank == 0 else 1, weights_only=True)
        assert ran == []
        assert_usable(rank, world_size)


def test_a_rank_with_torch_reads_what_one_without_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.delitem(sys.modules, "torch")
        packed = WEIGHTS.dumps(PLAIN)
    assert WEIGHTS.loads(packed) == PLAIN
    packed = WEIGHTS.dumps(PLAIN["a"])
    monkeypatch.delitem(sys.modules, "torch")
    assert_refused(UnsupportedError, "Import torch first", WEIGHTS.loads, packed)


HARMFUL = {
    "a function": pickle.dumps(Snare(1)),
    "a method of what is allowed": b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.fromkeys\x93.",
    "os.system": b"cos\nsystem\n(S'true'\ntR.",
    "a class of Python, which could be changed": pickle.dumps(collections.Counter("aab")),
    "a persistent object": b"Pmine\n.",
    "no pickle": b"\x00\x01",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HARMFUL)
def test_pickles_make_nothing_but_plain_data(name: str) -> None:
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        WEIGHTS.loads(HARMFUL[name])
    assert ran == []


def test_a_file_of_torchs_older_format_is_not_given_to_torch() -> None:
    torch.save(Snare(1), file := io.BytesIO(), _use_new_zipfile_serialization=False)
    assert isinstance(WEIGHTS.loads(file.getvalue()), int)  # the number that it begins with
    assert ran == []


def test_an_allowed_class_cannot_be_changed() -> None:
    """BUILD with a slot state sets attributes of whatever is on the stack, here of OrderedDict itself."""
    assignment = b"\x80\x04\x8c\x0bcollections\x8c\x0bOrderedDict\x93N}\x8c\x05items\x8c\x01x\x73\x86b."
    with pytest.raises(TypeError, match=r"immutable|can't set"):
        WEIGHTS.loads(assignment)
    assert callable(collections.OrderedDict.items)


@pytest.mark.ranks(1)
def test_torchs_internals_put_and_take_such_objects(rank: int, world_size: int) -> None:
    with world():
        c10d = dist.distributed_c10d
        tensor, size = c10d._object_to_tensor(thing(2), "cpu", None, True)
        assert int(size) == len(tensor)
        assert_thing(torch.load(io.BytesIO(tensor.numpy().tobytes()), weights_only=True), 2)
        assert_thing(c10d._tensor_to_object(torch.cat([tensor, torch.ones(9, dtype=torch.uint8)]), size, None, True), 2)
        tensor, size = c10d._object_to_tensor(Snare(1), "cpu", None)
        with pytest.raises(pickle.UnpicklingError, match="note"):
            c10d._tensor_to_object(tensor, size, None, weights_only=True)
        assert ran == []
