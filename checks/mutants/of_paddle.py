"""Mistakes in the Paddle frontends."""

from __future__ import annotations

from checks.mutants.mutant import Mutant

__all__ = ["MUTANTS"]

_TESTS = "tests/frontends/paddle/test_paddle_"


def _in(file: str, name: str, before: str, after: str, *tests: str) -> Mutant:
    return Mutant(
        f"paddle/{name}", f"shim/frontends/_paddle/{file}", before, after, tuple(f"{_TESTS}{test}.py" for test in tests)
    )


MUTANTS = (
    _in(
        "collectives/exchanges.py",
        "splits-swapped",
        'splits_of(caller, group, "output_splits", output_splits),\n            splits_of(caller, group, "input_splits", input_splits),',
        'splits_of(caller, group, "input_splits", input_splits),\n            splits_of(caller, group, "output_splits", output_splits),',
        "collectives",
    ),
    _in("arguments.py", "list-not-filled", "        outputs.extend(places)\n", "        pass\n", "collectives"),
    _in(
        "arguments.py",
        "root-of-the-world",
        "        return members.group_rank(_integer(role, world_rank))\n",
        "        return _integer(role, world_rank)\n",
        "reductions",
    ),
    _in(
        "arguments.py",
        "sends-to-itself",
        "        if peer == members.rank:\n",
        "        if False:\n",
        "point_to_point",
        "errors",
    ),
    _in(
        "arguments.py",
        "list-missing-at-root",
        "    if inputs is None or (_is_list(inputs) and not inputs):\n",
        "    if False:\n",
        "errors",
        "collectives",
    ),
    _in(
        "arguments.py",
        "no-warning-elsewhere",
        "    if rank >= 0 and given is not None and not (_is_list(given) and not given):\n",
        "    if False:\n",
        "collectives",
        "errors",
        "membership",
    ),
    _in(
        "collectives/reductions.py",
        "reduce-ignores-op",
        "tensor, tensor, op, root, now=now), sync_op, group)",
        "tensor, tensor, ReduceOp.SUM, root, now=now), sync_op, group)",
        "reductions",
        "collectives",
    ),
    _in(
        "collectives/reductions.py",
        "async-waits",
        "tensor, tensor, op, 1.0, now), sync_op, group)",
        "tensor, tensor, op, 1.0, now), True, group)",
        "tasks",
        "reductions",
        "stream",
    ),
    _in(
        "training/gradients.py",
        "sum-for-average",
        "self._all_reduce(flat, ReduceOp.AVG)",
        "self._all_reduce(flat, ReduceOp.SUM)",
        "data_parallel",
    ),
    _in(
        "training/gradients.py",
        "unused-on-one-rank",
        "                    parameter.grad = _paddle.zeros_like(parameter)\n",
        "                    continue\n",
        "data_parallel",
    ),
    _in(
        "collectives/messages.py",
        "receives-from-itself",
        "calls.receive(caller, members, tensor, peer_of(caller, group, src), 0, bool(sync_op))",
        "calls.receive(caller, members, tensor, None, 0, bool(sync_op))",
        "point_to_point",
    ),
)
