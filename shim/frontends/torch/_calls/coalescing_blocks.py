"""Blocks whose calls of one collective begin together at the end; torch calls what they bind a coalescing manager."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from shim.core import groups, work
from shim.errors import StateError, UnsupportedError
from shim.frontends.torch._calls.coalesced_lists import together
from shim.frontends.torch._calls.work import Work, begin, finish
from shim.frontends.torch._compiled_graphs import between_graphs
from shim.frontends.torch._errors import torch_function

__all__ = [
    "BLOCK",
    "_Block",
    "_CoalescingManager",
    "_CollOp",
    "_IllegalWork",
    "begins_at_once",
    "finish_or_collect",
    "open_blocks",
    "refuse_block_device",
]

BLOCK = torch_function("_coalescing_manager")


class _IllegalWork(Work):
    """What an asynchronous call within a block returns: only what the block binds can be waited for."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(work.ABSENT, [])

    def __getattribute__(self, name: str) -> Any:
        if hasattr(Work, name) and not name.startswith("__"):
            raise BLOCK.explain(
                StateError(f"{name} cannot be asked of one call's work\nWait for what the block binds, after it.")
            )
        return object.__getattribute__(self, name)


class _CoalescingManager:
    """What ``with _coalescing_manager() as manager`` binds; *works* are those to wait for."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Wait for *work* too."""
        if work:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all works."""
        for started in self.works:
            started.wait()


class _CollOp:
    """One collective call: the function *op*, its *tensor* and *dst_tensor*, reduce op *redop* and *root*."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Any,
        dst_tensor: Any = None,
        redop: Any = None,
        root: int | None = None,
    ) -> None:
        self.op = op
        self.tensor = tensor
        self.dst_tensor = dst_tensor
        self.redop = redop
        self.root = root


class _Block(AbstractContextManager[_CoalescingManager]):
    """A block: calls of *members* that its thread makes within it are collected here, and begin at its end.

    None begins earlier, as a rank whose call is refused leaves the block, and the others would have begun too many.
    """

    def __init__(self, members: groups.ProcessGroup, async_ops: bool) -> None:
        self._members = members
        self._async_ops = async_ops
        self._key = (0, members)  # the thread is the one that enters it
        self._works = _CoalescingManager()
        self._begin()

    def _begin(self) -> None:
        self._names: set[str] = set()
        self._awaited = 0  # a call that is being made and not collected yet; one that was refused never is
        self._collected: list[work.Work] = []
        self._outputs: list[Any] = []

    def __enter__(self) -> _CoalescingManager:
        if self._members.rank < 0:  # all groups that the caller is outside of are one, and nothing is to be collected
            return self._works
        self._key = (threading.get_ident(), self._members)
        if self._key in open_blocks:
            raise BLOCK.explain(StateError("a block of this group is open already"), self._members)
        self._begin()
        open_blocks[self._key] = self
        return self._works

    def __exit__(self, *raised: object) -> None:
        open_blocks.pop(self._key, None)
        if any(raised):
            return
        self._check()
        if not self._collected:
            return
        everything = together(BLOCK, self._members, self._collected)
        if self._async_ops and len(self._names) < 2:
            self._works.append(begin(everything, self._outputs))
            return
        everything.wait()
        if len(self._names) > 1:
            raise BLOCK.explain(
                StateError(f"all calls of a block must be of one kind, got {', '.join(sorted(self._names))}"),
                self._members,
            )

    def _check(self) -> None:
        """Raise where a call was refused. The others were told, in place of what would begin at the end: once is enough."""
        if self._awaited:
            raise BLOCK.explain(StateError("a call of the block was refused, so none of them begins"), self._members)

    def expect(self) -> None:
        """Note that a call is being made, which is collected next unless it is refused."""
        self._check()
        self._awaited += 1

    def take(self, name: str, prepared: work.Work, async_op: bool, outputs: Any) -> Work | None:
        """Collect *prepared*, a call of the collective *name*; return what its caller gets."""
        self._names.add(name)
        self._awaited -= 1
        if prepared is not work.ABSENT:
            prepared.hold_memory()
            self._collected.append(prepared)
            self._outputs.append(outputs)
        return _IllegalWork() if async_op else None


def refuse_block_device(device: Any) -> None:
    """Refuse a *device* whose calls are to be coalesced in a way of its own."""
    if device is not None:
        raise BLOCK.explain(
            UnsupportedError(
                f"device must be None: the torch frontend's engines have no other way to coalesce, got {device!r}\n"
                "Use batch_isend_irecv for sending and receiving."
            )
        )


# By thread and group. While there are any, no call is carried out as soon as it is made.
open_blocks: dict[tuple[int, groups.ProcessGroup], _Block] = {}


def begins_at_once(members: groups.ProcessGroup) -> bool:
    """Return whether a call that may be collected is carried out as soon as it is made; ask before it can be refused.

    Raises StateError in a block of which a call was refused.
    """
    block = open_blocks.get((threading.get_ident(), members)) if open_blocks else None
    if block is not None:
        block.expect()
    return not open_blocks


def finish_or_collect(
    members: groups.ProcessGroup, name: str, prepared: work.Work, async_op: bool, outputs: Any
) -> Work | None:
    """Finish *prepared* as usual, or leave it to the block of *members*, where there is one; *name* is its kind."""
    block = open_blocks.get((threading.get_ident(), members)) if open_blocks else None
    if block is None:
        return finish(prepared, async_op, outputs)
    return block.take(name, prepared, async_op, outputs)


between_graphs(globals(), __all__)
