"""What is done wrong both with MindSpore itself and with its frontend here; these are cases too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from real_mindspore_cases import CASES, DIFFERENT, RAISES, case, tensor

__all__ = ["CASES", "DIFFERENT", "RAISES"]

Wrong = Callable[[Any], Any]
ONE: Any = tensor(0, 3)
TENSORS: Sequence[Any] = [tensor(0, 3), tensor(1, 3), tensor(2, 3)]
NARROW = [tensor(0, 2), tensor(1, 2), tensor(2, 2)]
WRONG: dict[str, Wrong] = {
    "all_reduce of a list": lambda m: m.all_reduce([1.0]),
    "all_reduce by a number": lambda m: m.all_reduce(ONE, 0),
    "all_reduce by product": lambda m: m.all_reduce(ONE, "product"),
    "all_reduce in group 0": lambda m: m.all_reduce(ONE, group=0),
    "all_reduce async 1": lambda m: m.all_reduce(ONE, async_op=1),
    "all_gather_into_tensor of a list": lambda m: m.all_gather_into_tensor(ONE, [1.0]),
    "all_gather_into_tensor into a list": lambda m: m.all_gather_into_tensor([ONE], ONE),
    "all_gather_into_tensor_uneven in group 0": lambda m: m.all_gather_into_tensor_uneven(ONE, ONE, group=0),
    "all_gather_into_tensor_uneven async 1": lambda m: m.all_gather_into_tensor_uneven(ONE, ONE, async_op=1),
    "all_gather into nothing": lambda m: m.all_gather([], ONE),
    "all_gather into two": lambda m: m.all_gather(TENSORS[:2], ONE),
    "all_gather into a tensor": lambda m: m.all_gather(ONE, ONE),
    "all_gather into numbers": lambda m: m.all_gather([1.0, 2.0, 3.0], ONE),
    "all_gather into other shapes": lambda m: m.all_gather(NARROW, ONE),
    "all_gather into another dtype": lambda m: m.all_gather([tensor(0, 3, "int32")] * 3, ONE),
    "all_gather of a number": lambda m: m.all_gather(TENSORS, 1.0),
    "reduce_scatter_tensor by a number": lambda m: m.reduce_scatter_tensor(ONE, ONE, 1),
    "reduce_scatter_tensor of a list": lambda m: m.reduce_scatter_tensor(ONE, [1.0]),
    "reduce_scatter_tensor_uneven by prod": lambda m: m.reduce_scatter_tensor_uneven(ONE, ONE, None, "prod"),
    "reduce_scatter of a tensor": lambda m: m.reduce_scatter(ONE, ONE),
    "reduce_scatter of two": lambda m: m.reduce_scatter(ONE, TENSORS[:2]),
    "reduce_scatter of other shapes": lambda m: m.reduce_scatter(ONE, NARROW),
    "reduce_scatter by mean": lambda m: m.reduce_scatter(ONE, TENSORS, "mean"),
    "broadcast of a number": lambda m: m.broadcast(1.0, 0),
    "broadcast from text": lambda m: m.broadcast(ONE, "0"),
    "broadcast from 9": lambda m: m.broadcast(ONE, 9),
    "broadcast from nowhere": lambda m: m.broadcast(ONE),
    "reduce to text": lambda m: m.reduce(ONE, "0"),
    "reduce by bor": lambda m: m.reduce(ONE, 0, "bor"),
    "gather without a list": lambda m: m.gather(ONE, None),
    "gather into different shapes": lambda m: m.gather(ONE, [tensor(0, 2), tensor(0, 3), ONE]),
    "gather into different dtypes": lambda m: m.gather(ONE, [tensor(0, 3, "int32"), ONE, ONE]),
    "gather to text": lambda m: m.gather(ONE, TENSORS, "0"),
    "gather to 9": lambda m: m.gather(ONE, TENSORS, 9),
    "scatter without a list": lambda m: m.scatter(ONE, None),
    "scatter of different shapes": lambda m: m.scatter(ONE, [tensor(0, 2), tensor(0, 3), ONE]),
    "scatter from 9": lambda m: m.scatter(ONE, TENSORS, 9),
    "scatter async None": lambda m: m.scatter(ONE, TENSORS, async_op=None),
    "all_to_all into a tensor": lambda m: m.all_to_all(ONE, TENSORS),
    "all_to_all of a tensor": lambda m: m.all_to_all(TENSORS, ONE),
    "all_to_all of different dtypes": lambda m: m.all_to_all(TENSORS, [ONE, ONE, tensor(0, 3, "int32")]),
    "all_to_all_single of a list": lambda m: m.all_to_all_single(ONE, [1.0]),
    "all_to_all_single of odd rows": lambda m: m.all_to_all_single(tensor(0, 4), tensor(0, 4)),
    "barrier in group 0": lambda m: m.barrier(0),
    "barrier async 1": lambda m: m.barrier(async_op=1),
    "send of a number": lambda m: m.send(1.0, (m.get_rank() + 1) % 3),
    "send to text": lambda m: m.send(ONE, "0"),
    "send in group 0": lambda m: m.send(ONE, 0, 0),
    "send to itself": lambda m: m.send(ONE, m.get_rank()),
    "isend to itself": lambda m: m.isend(ONE, m.get_rank()),
    "recv into a number": lambda m: m.recv(1.0, (m.get_rank() + 1) % 3),
    "recv from text": lambda m: m.recv(ONE, "0"),
    "irecv from None": lambda m: m.irecv(ONE, None),
    "P2POp of send": lambda m: m.P2POp("send", ONE, 1),
    "P2POp of a function": lambda m: m.P2POp(print, ONE, 1),
    "P2POp with a list": lambda m: m.P2POp("isend", [1.0], 1),
    "P2POp to text": lambda m: m.P2POp("isend", ONE, "1"),
    "P2POp with a tag": lambda m: m.P2POp("isend", ONE, 1, None, 5),
    "batch_isend_irecv of nothing": lambda m: m.batch_isend_irecv([]),
    "batch_isend_irecv of tensors": lambda m: m.batch_isend_irecv([ONE]),
    "batch_isend_irecv in two groups": lambda m: m.batch_isend_irecv(
        [m.P2POp("isend", ONE, 0), m.P2POp("isend", ONE, 0, "a")]
    ),
    "all_gather_object into two": lambda m: m.all_gather_object([None, None], 1),
    "all_gather_object into a tuple": lambda m: m.all_gather_object((None, None, None), 1),
    "all_gather_object in group 0": lambda m: m.all_gather_object([None] * 3, 1, 0),
    "broadcast_object_list of nothing": lambda m: m.broadcast_object_list([]),
    "broadcast_object_list from text": lambda m: m.broadcast_object_list([1], "0"),
    "gather_object to text": lambda m: m.gather_object(1, [None] * 3, "0"),
    "scatter_object_list into nothing": lambda m: m.scatter_object_list([], [1, 2, 3]),
    "scatter_object_list from text": lambda m: m.scatter_object_list([1], [1, 2, 3], "0"),
    "send_object_list of a tuple": lambda m: m.send_object_list((1,), 0),
    "send_object_list to text": lambda m: m.send_object_list([1], "0"),
    "send_object_list to itself": lambda m: m.send_object_list([1], m.get_rank()),
    "recv_object_list into None": lambda m: m.recv_object_list(None),
    "new_group of a tuple": lambda m: m.new_group((0, 1)),
    "new_group of twins": lambda m: m.new_group([0, 0]),
    "new_group of nobody": lambda m: m.new_group([]),
    "new_group of gloo": lambda m: m.new_group([0, 1], backend="gloo"),
    "new_group with options": lambda m: m.new_group([0, 1], pg_options="high"),
    "get_rank in group 0": lambda m: m.get_rank(0),
    "get_world_size in group 0": lambda m: m.get_world_size(0),
    "get_backend of group 0": lambda m: m.get_backend(0),
    "get_global_rank of text": lambda m: m.get_global_rank(None, "0"),
    "get_group_rank of text": lambda m: m.get_group_rank(None, "0"),
    "get_process_group_ranks of group 0": lambda m: m.get_process_group_ranks(0),
    "destroy_process_group 0": lambda m: m.destroy_process_group(0),
    "init_process_group of gloo": lambda m: m.init_process_group("gloo"),
    "init_process_group with text": lambda m: m.init_process_group(world_size="3"),
    "init_process_group with seconds": lambda m: m.init_process_group(timeout=3),
    "init_process_group with a store of text": lambda m: m.init_process_group(store="store"),
    "TCPStore on port text": lambda m: m.TCPStore("127.0.0.1", "1"),
    "TCPStore on port 65536": lambda m: m.TCPStore("127.0.0.1", 65536),
    "TCPStore on host 1": lambda m: m.TCPStore(1, 1),
    "TCPStore for nobody": lambda m: m.TCPStore("127.0.0.1", 1, 0),
    "TCPStore for seconds": lambda m: m.TCPStore("127.0.0.1", 1, timeout=3),
}
DIFFERENT_WRONG = {
    "new_group with options": ("NotImplementedError", "no options mean anything here, of whatever type they are"),
    "batch_isend_irecv of tensors alone": (
        "TypeError",
        "what is documented; MindSpore's AttributeError is an oversight",
    ),
}
CLASSES = {  # of all others it is TypeError
    "broadcast from 9": "RuntimeError",
    "gather to 9": "RuntimeError",
    "scatter from 9": "RuntimeError",
    "all_to_all_single of odd rows": "ValueError",
    "send to itself": "ValueError",
    "isend to itself": "ValueError",
    "P2POp with a tag": "NotImplementedError",
    "send_object_list to itself": "ValueError",
    "new_group of twins": "ValueError",
    "new_group of nobody": "ValueError",
    "init_process_group of gloo": "ValueError",
    "TCPStore on port 65536": "ValueError",
    "TCPStore for nobody": "ValueError",
    "set_comm_ops_inplace of another": "ValueError",
    "batch_isend_irecv of tensors alone": "AttributeError",
    "batch_isend_irecv of a shape alone": "ValueError",
    "get_rank of no group": "RuntimeError",
    "create_group of nobody": "ValueError",
    "create_group of twins": "ValueError",
    "destroy_group of the world": "ValueError",
    "init of gloo": "RuntimeError",
}


def wrong_cases(module: str, mistakes: dict[str, Wrong], classes: dict[str, str]) -> None:
    for name, wrong in mistakes.items():
        raises = classes.get(name, "TypeError")
        case(f"{module}: {name}", lambda f, wrong=wrong: wrong(f.modules[module]), DIFFERENT_WRONG.get(name), raises)


for module in ("mint", "ops"):
    wrong_cases(module, WRONG, CLASSES)

WRONG_OF_OPS: dict[str, Wrong] = {
    "set_comm_ops_inplace 1": lambda m: m.set_comm_ops_inplace(1),
    "set_comm_ops_inplace of text": lambda m: m.set_comm_ops_inplace(True, "all_reduce"),
    "set_comm_ops_inplace of another": lambda m: m.set_comm_ops_inplace(True, ["new_group"]),
    "gather_into_tensor of a list": lambda m: m.gather_into_tensor(ONE, [1.0]),
    "scatter_tensor into a list": lambda m: m.scatter_tensor([1.0], ONE),
    "all_to_all_v_c by a tuple": lambda m: m.all_to_all_v_c(ONE, ONE, (1,) * 9),
    "all_to_all_v_c by text": lambda m: m.all_to_all_v_c(ONE, ONE, ["1"] * 9),
    "all_to_all_v_c by four": lambda m: m.all_to_all_v_c(ONE, ONE, [1] * 4),
}
wrong_cases("ops", WRONG_OF_OPS, CLASSES)

WRONG_OF_COMM_FUNC: dict[str, Wrong] = {
    "all_reduce of a list": lambda m: m.all_reduce([1.0]),
    "all_reduce by avg": lambda m: m.all_reduce(ONE, "avg"),
    "all_reduce by a number": lambda m: m.all_reduce(ONE, 0),
    "all_gather_into_tensor of a list": lambda m: m.all_gather_into_tensor([1.0]),
    "reduce_scatter_tensor of a list": lambda m: m.reduce_scatter_tensor([1.0]),
    "reduce of a list": lambda m: m.reduce([1.0], 0),
    "broadcast from text": lambda m: m.broadcast(ONE, "0"),
    "gather_into_tensor to text": lambda m: m.gather_into_tensor(ONE, "0"),
    "scatter_tensor of a list": lambda m: m.scatter_tensor([1.0]),
    "barrier in no group": lambda m: m.barrier(None),
    "send of a list to text": lambda m: m.send([1.0], "0"),
    "recv from text": lambda m: m.recv(ONE, "0"),
    "P2POp of send": lambda m: m.P2POp("send", ONE, 1),
    "P2POp of 1": lambda m: m.P2POp(1, ONE, 1),
    "P2POp with a list": lambda m: m.P2POp("irecv", [2, 3], 1),
    "P2POp to text": lambda m: m.P2POp("irecv", ONE, "1"),
    "P2POp with a tag": lambda m: m.P2POp("irecv", ONE, 1, None, 1),
    "P2POp with a dtype of text": lambda m: m.P2POp("irecv", (2,), 1, recv_dtype="float32"),
    "batch_isend_irecv of nothing": lambda m: m.batch_isend_irecv([]),
    "batch_isend_irecv of tensors alone": lambda m: m.batch_isend_irecv([ONE]),
    "batch_isend_irecv of a shape alone": lambda m: m.batch_isend_irecv([m.P2POp("irecv", (2,), 1)]),
    "all_to_all_with_output_shape of a tensor": lambda m: m.all_to_all_with_output_shape([(3,)] * 3, ONE),
    "all_to_all_with_output_shape into numbers": lambda m: m.all_to_all_with_output_shape([3, 3, 3], TENSORS),
    "all_to_all_single_with_output_shape of a list": lambda m: m.all_to_all_single_with_output_shape((3,), [1.0]),
    "all_to_all_single_with_output_shape into 3": lambda m: m.all_to_all_single_with_output_shape(3, ONE),
    "all_to_all_v_c by a tuple": lambda m: m.all_to_all_v_c(ONE, ONE, (1,) * 9),
}
wrong_cases("comm_func", WRONG_OF_COMM_FUNC, {**CLASSES, "P2POp of send": "ValueError"})

WRONG_OF_COMMUNICATION: dict[str, Wrong] = {
    "get_rank of 0": lambda m: m.get_rank(0),
    "get_rank of no group": lambda m: m.get_rank("no such group"),
    "get_group_size of None": lambda m: m.get_group_size(None),
    "get_local_rank of 0": lambda m: m.get_local_rank(0),
    "get_comm_name of 0": lambda m: m.get_comm_name(0),
    "get_world_rank_from_group_rank of text": lambda m: m.get_world_rank_from_group_rank("hccl_world_group", "0"),
    "get_group_rank_from_world_rank of text": lambda m: m.get_group_rank_from_world_rank("0", "hccl_world_group"),
    "create_group of a tuple": lambda m: m.create_group("g", (0, 1)),
    "create_group of nobody": lambda m: m.create_group("g", []),
    "create_group of twins": lambda m: m.create_group("g", [0, 0]),
    "create_group called 0": lambda m: m.create_group(0, [0, 1]),
    "destroy_group of the world": lambda m: m.destroy_group("mccl_world_group"),
    "destroy_group of 0": lambda m: m.destroy_group(0),
    "init of 1": lambda m: m.init(1),
    "init of gloo": lambda m: m.init("gloo"),
}
wrong_cases("communication", WRONG_OF_COMMUNICATION, CLASSES)
