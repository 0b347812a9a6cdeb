"""Questions about the world that modules of the frameworks ask by themselves: a substituted program gets the frameworks' answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from preloaded_programs import run_python

from campaigns.questions.comparison import PROGRAM, answers_of, compare, recorded

CELL = """
import mindspore
import numpy as np
from mindspore import nn, ops
from mindspore.communication import GlobalComm
from mindspore.communication._comm_helper import _get_group_ranks, _get_rank_helper, _is_initialized
from mindspore.communication._comm_helper import _get_group_rank_from_world_rank_from_cache_helper as cached
from mindspore.parallel._utils import _get_device_num, _get_gradients_mean, _get_parallel_mode

assert not _is_initialized()
assert _get_parallel_mode() == "stand_alone" and _get_device_num() == 1
mindspore.set_device("CPU")
mindspore.communication.init()
rank = mindspore.communication.get_rank()
mindspore.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
mindspore.communication.create_group("turned", [1, 0])
assert _get_group_ranks("turned") == [1, 0] and _get_group_ranks(GlobalComm.WORLD_COMM_GROUP) == [0, 1]
assert _get_rank_helper(group="turned") == 1 - rank and cached(rank, "turned") == 1 - rank


class Step(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__(auto_prefix=False)
        self.network, self.optimizer, self.weights = network, optimizer, optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True)
        self.reducer_flag = _get_parallel_mode() == mindspore.ParallelMode.DATA_PARALLEL
        if self.reducer_flag:
            self.grad_reducer = nn.DistributedGradReducer(self.weights, _get_gradients_mean(), _get_device_num())

    def construct(self, x):
        grads = self.grad(self.network, self.weights)(x)
        self.optimizer(self.grad_reducer(grads) if self.reducer_flag else grads)


network = nn.Dense(2, 1, weight_init="zeros", has_bias=False)
Step(network, nn.SGD(network.trainable_params(), 1.0))(mindspore.Tensor(np.array([[rank, 1]], "float32")))
assert network.weight.asnumpy().tolist() == [[-0.5, -1]], network.weight.asnumpy()
mindspore.reset_auto_parallel_context()
assert _get_parallel_mode() == "stand_alone"
"""

GROUPS = """
import paddle.distributed as dist
from paddle.distributed.collective import _get_group_map, _get_group_map_by_name
from paddle.distributed.communication.group import _GroupManager
from paddle.distributed.parallel_helper import _is_parallel_ctx_initialized

by_id = _GroupManager.group_map_by_id
assert not _is_parallel_ctx_initialized() and by_id == {}
dist.init_parallel_env()
made = dist.new_group([0, 1])
assert _is_parallel_ctx_initialized()
assert by_id is _GroupManager.group_map_by_id and by_id[_GroupManager.global_group_id] is dist.get_group(0)
assert list(by_id.values()) == list(_get_group_map().values()) == [dist.get_group(0), made]
assert list(_get_group_map_by_name()) == ["_default_pg", made.name]
dist.destroy_process_group(made)
assert list(by_id) == [0]
"""


def run(folder: Path, *arguments: str) -> None:
    done = run_python("-m", "shim", "run", "-n", "2", "--as-installed", *arguments, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program", [CELL, GROUPS], ids=["mindspore", "paddle"])
def test_programs_that_ask_private_helpers_work_with_the_world(program: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    run(tmp_path, "program.py")


@pytest.mark.parametrize("framework", ["torch", "paddle", "mindspore"])
def test_every_question_is_answered_as_in_the_frameworks_own_world(framework: str) -> None:
    theirs = recorded(framework)
    ours = answers_of(framework, lambda name, folder, asked: run(folder, PROGRAM, name, str(folder), str(asked)))
    found = compare(framework, theirs, ours)
    assert not found.faults, "\n".join(found.faults)
    assert found.compared == len(theirs) > 50


def test_an_answer_that_differs_without_a_reason_is_a_fault() -> None:
    theirs = recorded("mindspore")
    wrong = json.loads(json.dumps(theirs))
    wrong["mindspore.parallel._utils:_get_device_num"] = [2, 1]
    del wrong["mindspore.parallel._utils:_get_parallel_mode"]
    wrong["mindspore.communication.management:get_comm_name"] = ["world", "world"]
    found = compare("mindspore", theirs, {**wrong, "mindspore:get_new": [0, 0]})
    told = "\n".join(found.faults)
    for fault in ("get_new is not on record", "_get_device_num: mindspore answers [2, 2]", "_get_parallel_mode: mind"):
        assert fault in told
    assert "no answer differs for this reason: MindSpore finds no group" in told
    assert len(found.explained) == 1
