"""paddle.Model in substituted programs: it trains, evaluates and saves as on Paddle's own groups, and refuses to go alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from preloaded_programs import run_python

# What a rank prints was recorded of Paddle 3.3.1 on gloo: the loss is that of its own part, the accuracy that of all.
EVALUATION = """
import os

import numpy as np
import paddle
import paddle.distributed as dist

rank = dist.get_rank()


class Numbers(paddle.io.Dataset):
    def __len__(self):
        return 14

    def __getitem__(self, index):
        return np.random.RandomState(index).rand(3).astype("float32"), np.array([index % 2])


paddle.seed(3 + rank)
network = paddle.nn.Linear(3, 2)
model = paddle.Model(network)
sgd = paddle.optimizer.SGD(0.1, parameters=network.parameters())
model.prepare(sgd, paddle.nn.CrossEntropyLoss(), paddle.metric.Accuracy())
model.fit(Numbers(), batch_size=2, epochs=2, verbose=0, shuffle=False)
found = model.evaluate(Numbers(), batch_size=2, verbose=0)
np.testing.assert_allclose(network.weight.numpy().sum(), -0.41369137, rtol=1e-5)
np.testing.assert_allclose(found["loss"], [0.85977072, 0.50213140][rank], rtol=1e-5)
np.testing.assert_allclose(found["acc"], 6 / 14)
assert model.predict(Numbers(), batch_size=2, stack_outputs=True, verbose=0)[0].shape == (7, 2)
os.makedirs(f"of_{rank}")
model.save(f"of_{rank}/saved")
assert os.path.exists(f"of_{rank}/saved.pdparams") == (rank == 0)
"""
STATIC = """
import paddle

paddle.enable_static()
spec = paddle.static.InputSpec([None, 3], "float32", "x")
try:
    paddle.Model(paddle.nn.Linear(3, 2), [spec], [spec])
except NotImplementedError as error:
    assert "in static mode would leave each rank to itself" in str(error), error
else:
    raise AssertionError("not refused")
"""


def assert_runs(program: str, folder: Path) -> None:
    (folder / "program.py").write_text(program)
    ended = run_python(*["-W", "ignore", "-m", "shim", "run", "-n", "2", "--as-installed", "program.py"], cwd=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.nightly
def test_training_and_evaluation_are_those_on_paddles_own_groups(tmp_path: Path) -> None:
    assert_runs(EVALUATION, tmp_path)


@pytest.mark.nightly
def test_static_mode_is_refused(tmp_path: Path) -> None:
    assert_runs(STATIC, tmp_path)
