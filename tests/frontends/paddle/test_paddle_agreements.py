"""What the paddle frontend's ranks agree on by themselves, and a user's call that could be taken for it."""

from __future__ import annotations

import pytest
from paddle_world import world

from shim.errors import MismatchError


@pytest.mark.ranks(2)
def test_no_call_of_a_users_is_taken_for_which_gradients_there_are(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    with world() as dist:
        model = DataParallel(nn.Linear(2, 1, bias_attr=False))  # whose hooks end with it
        output = model(paddle.ones([1, 2])).sum()
        alike = paddle.zeros([1], "int32")
        with pytest.raises(SystemError if rank == 0 else MismatchError) as told:
            output.backward() if rank == 0 else dist.all_reduce(alike)
        error = told.value.__cause__ if rank == 0 else told.value
        assert ": averaging gradients, at " in str(error)
        assert alike.tolist() == [0]
