"""Mistakes in the Paddle frontends."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant

_TESTS = "tests/frontends/paddle/test_paddle_"


def _in(file: str, name: str, before: str, after: str, *tests: str) -> Mutant:
    return Mutant(
        f"paddle/{name}", f"shim/frontends/_paddle/{file}", before, after, tuple(f"{_TESTS}{test}.py" for test in tests)
    )


MUTANTS = (
    _in(
        "collectives/bodies.py",
        "splits-swapped",
        "            output_rows,\n            input_rows,\n",
        "            input_rows,\n            output_rows,\n",
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
        "collectives/bodies.py",
        "reduce-ignores-op",
        "tensor, tensor, op, root, now=now), sync_op, group)",
        "tensor, tensor, ReduceOp.SUM, root, now=now), sync_op, group)",
        "reductions",
        "collectives",
    ),
    _in(
        "collectives/bodies.py",
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
        "collectives/point_to_point.py",
        "receives-from-itself",
        "calls.receive(caller, members, tensor, peer_of(caller, group, src), 0, bool(sync_op))",
        "calls.receive(caller, members, tensor, None, 0, bool(sync_op))",
        "point_to_point",
    ),
    _in("arguments.py", "no-rows-of-a-number", "if splits and not any(splits) and", "if False and", "collectives"),
    _in(
        "graphs.py",
        "graphs-out-of-order",
        "zip(results, (*written, order), strict=True)",
        "zip(results, written, strict=False)",
        "graphs",
    ),
    _in("graphs.py", "order-begins-in-a-loop", "    if block.ops:\n", "    if False:\n", "graphs"),
    _in(
        "graphs.py",
        "list-as-it-becomes",
        "arguments = tuple(list(one) if isinstance(one, (list, tuple)) else one for one in arguments)",
        "arguments = tuple(arguments)",
        "graphs",
    ),
    _in("graphs.py", "gradient-stops", "value.stop_gradient = had_no_gradient", "del had_no_gradient", "graphs"),
    _in("graphs.py", "saved-without-it", 'frame.f_code.co_name == "save"', 'frame.f_code.co_name == "saves"', "graphs"),
    _in("graphs.py", "rewritten", 'return bool(mode.name != "AST")', "return True", "graphs"),
    _in("collectives/of_both.py", "waits-while-compiling", "    refuse_in_graphs(caller)\n", "", "graphs"),
    _in(
        "collectives/point_to_point.py",
        "messages-begun-in-graphs",
        "        refuse_symbolic(caller, [] if sync_op else [tensor])\n        return recorded(receive_from",
        "        return recorded(receive_from",
        "graphs",
    ),
    _in("training/fleet.py", "shard-too-long", "(rank < more)", "(rank <= more)", "fleet"),
    _in(
        "training/fleet.py",
        "hosts-not-counted",
        "len(hosts) if len(hosts) > 1 or not job.local_size else",
        "len(hosts) if True else",
        "fleet",
    ),
    _in("training/fleet.py", "prints-everywhere", "if fleet.worker_index() == rank_id:", "if True:", "fleet"),
)
