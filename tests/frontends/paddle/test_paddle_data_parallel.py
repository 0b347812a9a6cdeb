"""DataParallel: ranks that train on parts of a batch end where one process does that trains on the whole of it."""

from __future__ import annotations

import gc
import inspect
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from paddle_world import world

from shim.errors import MismatchError, StateError, UnsupportedError

ROWS = 12
NETWORKS = ["Plain", "Shared", "Frozen", "Unused", "Doubles", "InADict", "InAnObject"]


def mean_over_ranks(dist: Any, value: float) -> float:
    tensor = np.array([value])
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    return float(tensor[0])


@pytest.mark.ranks(3)
@pytest.mark.parametrize(
    "buffers", [{}, {"comm_buffer_size": 0.00001, "last_comm_buffer_size": 0}], ids=["one", "many"]
)
@pytest.mark.parametrize("network", NETWORKS)
def test_training_is_that_of_one_process(network: str, buffers: dict[str, float], rank: int, world_size: int) -> None:
    from data_parallel_networks import DataParallel, assert_same_state, batch, made, paddle, part, trained

    with world() as dist:
        inputs, targets = batch()
        alone = made(network, 0)
        wanted = trained(alone, paddle.to_tensor(inputs), paddle.to_tensor(targets))
        model = DataParallel(made(network, rank), **buffers)  # another beginning on each rank
        losses = trained(model, part(inputs, rank, world_size), part(targets, rank, world_size))
        assert [mean_over_ranks(dist, loss) for loss in losses] == pytest.approx(wanted, rel=1e-5)
        assert_same_state(model, alone)


@pytest.mark.ranks(3)
def test_gradients_are_the_mean_and_replaced_by_nothing_else(rank: int, world_size: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    with world():
        layer = nn.Linear(2, 1)
        layer.bias.stop_gradient = True
        model = DataParallel(layer)
        for total in (1, 2):  # they add up, as in paddle, until they are cleared
            model(paddle.full([1, 2], rank + 1.0)).sum().backward()
            mean = total * (world_size + 1) / 2
            np.testing.assert_allclose(layer.weight.grad.numpy(), np.full((2, 1), mean))
        assert layer.bias.grad is None


@pytest.mark.ranks(3)
def test_no_sync_adds_up_what_the_next_backward_averages(rank: int, world_size: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    with world():
        layer = nn.Linear(2, 1)
        model = DataParallel(layer)
        model(paddle.ones([1, 2]))  # without a backward: not to be averaged later
        with model.no_sync():
            model(paddle.full([1, 2], rank + 1.0)).sum().backward()
            np.testing.assert_allclose(layer.weight.grad.numpy(), np.full((2, 1), rank + 1.0))
            assert not model.grad_need_sync
        model(paddle.full([1, 2], 10.0 * rank)).sum().backward()
        mean = sum(one + 1 + 10 * one for one in range(world_size)) / world_size
        np.testing.assert_allclose(layer.weight.grad.numpy(), np.full((2, 1), mean))


@pytest.mark.ranks(3)
@pytest.mark.parametrize("find", [True, False])
def test_a_layer_that_some_ranks_use(find: bool, rank: int, world_size: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    class Choosing(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.LayerList([nn.Linear(2, 1, bias_attr=False) for _ in range(world_size + 1)])

        def forward(self, x: Any) -> Any:
            return self.layers[rank](x)

    with world():
        model = DataParallel(Choosing(), find_unused_parameters=find)
        model(paddle.full([1, 2], rank + 1.0)).sum().backward()
        *used, never = model._layers.layers
        for one, layer in enumerate(used):
            np.testing.assert_allclose(layer.weight.grad.numpy(), np.full((2, 1), (one + 1) / world_size), rtol=1e-6)
        assert never.weight.grad is None


@pytest.mark.ranks(2)
def test_a_rank_that_uses_no_parameter_does_not_keep_the_others_waiting(rank: int) -> None:
    from data_parallel_networks import DataParallel, Plain, paddle

    class Skipping(Plain):
        def forward(self, x: Any) -> Any:
            return super().forward(x) if rank else x * 2

    with world():
        model = DataParallel(Skipping())
        x = paddle.ones([2, 4])
        x.stop_gradient = False
        model(x).sum().backward()
        bias = model._layers.second.bias.grad
        np.testing.assert_allclose(bias.numpy(), [1.0])  # the mean of 0 and of 2 rows


@pytest.mark.ranks(2)
def test_every_backward_through_an_output_is_averaged(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    with world():
        layer = nn.Linear(2, 1, bias_attr=False)
        model = DataParallel(layer)
        output = model(paddle.full([1, 2], rank + 1.0)).sum()
        output.backward(retain_graph=True)
        output.backward()
        np.testing.assert_allclose(layer.weight.grad.numpy(), [[3.0], [3.0]])
        layer.clear_gradients()
        model._layers(paddle.full([1, 2], rank + 1.0)).sum().backward()  # past it: this rank's own
        np.testing.assert_allclose(layer.weight.grad.numpy(), np.full((2, 1), rank + 1.0))


@pytest.mark.ranks(2)
def test_after_a_backward_that_failed_the_next_one_is_averaged(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    def fail(_: Any) -> None:
        raise ValueError("as the test wants it")

    with world():
        layer = nn.Linear(2, 1, bias_attr=False)
        model = DataParallel(layer)
        if rank == 0:
            x = paddle.ones([1, 2])
            x.stop_gradient = False
            x.register_hook(fail)
            with pytest.raises(OSError, match="as the test wants it"):
                model(x * 2).sum().backward()
            layer.clear_gradients()
        model(paddle.full([1, 2], rank + 1.0)).sum().backward()
        np.testing.assert_allclose(layer.weight.grad.numpy(), [[1.5], [1.5]])


@pytest.mark.ranks(2)
def test_buffers_and_what_is_not_to_be_synchronised(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    with world():
        network = nn.Sequential(nn.BatchNorm1D(2), nn.Linear(2, 2), nn.Linear(2, 2, bias_attr=False))
        for tensor in network[0]._obtain_parameters_buffers().values():
            tensor.set_value(paddle.full(tensor.shape, rank + 1.0))
        network[0].eval()  # in training it would use the statistics of its batch, and warn of it
        own = network[2].weight
        own.no_sync = True
        own.set_value(paddle.full([2, 2], rank + 1.0))
        model = DataParallel(network)
        assert all((tensor.numpy() == 1).all() for tensor in network[0]._obtain_parameters_buffers().values())
        assert (own.numpy() == rank + 1).all()
        model(paddle.full([3, 2], rank + 1.0)).sum().backward()
        bias = network[1].bias.grad.numpy()
        np.testing.assert_allclose(bias, np.full(2, 3 * (2 + 4) / 2))
        assert own.grad is not None


@pytest.mark.ranks(3)
def test_gradients_of_a_group(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    with world() as dist:
        group = dist.new_group([0, 2])
        layer = nn.Linear(2, 1, bias_attr=False)
        if rank == 1:
            with pytest.raises(RuntimeError, match="member"):
                DataParallel(layer, group=group)
            return
        model = DataParallel(layer, group=group)
        assert model.group is group
        model(paddle.full([1, 2], rank + 1.0)).sum().backward()
        np.testing.assert_allclose(layer.weight.grad.numpy(), [[2.0], [2.0]])


@pytest.mark.ranks(2)
def test_networks_that_differ_are_told_on_every_rank(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    with world():
        model = DataParallel(nn.Linear(2, 1, bias_attr=False))
        model._layers.weight = model._layers.create_parameter([2, 1])
        model.init_reducer()
        if rank:
            model._layers.add_parameter("more", model._layers.create_parameter([1]))
            model.init_reducer()
        with pytest.raises(SystemError) as told:
            model(paddle.ones([1, 2])).sum().backward()
        assert isinstance(told.value.__cause__, MismatchError)


DIFFERENT = {
    "one more": (
        "Linear(2, 3), Linear(3, 1)",
        "Linear(2, 3), Linear(3, 1), Linear(1, 1)",
        5,
        "nothing (it has 4)",
        "2.weight, float32 of",
    ),
    "another shape": (
        "Linear(2, 3), Linear(3, 1)",
        "Linear(2, 3), Linear(3, 2)",
        3,
        "of shape [3, 1]",
        "of shape [3, 2]",
    ),
    "in another order": (
        "Linear(2, 3), Linear(3, 2)",
        "Linear(3, 2), Linear(2, 3)",
        1,
        "of shape [2, 3]",
        "of shape [3, 2]",
    ),
    "another dtype": ("Linear(2, 3)", "Linear(2, 3).to(dtype='float64')", 1, "float32", "float64"),
    "not trained": (
        "Linear(2, 3, bias_attr=False)",
        "frozen(Linear(2, 3, bias_attr=False))",
        1,
        "trained",
        "of shape [2, 3] (it",
    ),
    "one layer more": (
        "BatchNorm1D(2)",
        "BatchNorm1D(2), Linear(2, 2)",
        5,
        "nothing",
        "1.weight",
    ),
    "used twice": ("Linear(2, 2), Linear(2, 2)", "*[Linear(2, 2)] * 2", 3, "trained", "once more"),
}


@pytest.mark.ranks(3)
@pytest.mark.parametrize("case", DIFFERENT)
def test_networks_that_differ_from_the_start_are_told_on_every_rank(case: str, rank: int, world_size: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    def frozen(layer: Any) -> Any:
        layer.weight.stop_gradient = True
        return layer

    first, last, number, *differences = DIFFERENT[case]
    made = last if rank == world_size - 1 else first
    layers = eval(f"Sequential({made})", {**vars(nn), "frozen": frozen})
    with world() as dist:
        before = [one.numpy().copy() for one in layers.parameters()]
        with pytest.raises(MismatchError, match=f"differ at number {number} of them") as told:
            DataParallel(layers)
        lines = str(told.value).splitlines()[1:]
        assert len(lines) == world_size
        for one, line in enumerate(lines):
            assert line.startswith(f"  rank {one}: ")
            assert differences[one == world_size - 1] in line
        for one, value in zip(layers.parameters(), before, strict=True):
            np.testing.assert_array_equal(one.numpy(), value)
        total = paddle.ones([1])
        dist.all_reduce(total)  # the world is as good as before
        assert total.tolist() == [world_size]


@pytest.mark.ranks(2)
def test_names_may_differ(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn

    class Named(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.add_sublayer(f"of_{rank}", nn.Linear(2, 2))

    with world():
        DataParallel(Named())


@pytest.mark.ranks(2)
def test_what_it_refuses(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn

    with world() as dist:
        with pytest.raises(AssertionError, match="group must be a Group or None"):
            DataParallel(nn.Linear(2, 1), group=dist.new_group([0, 1]).process_group)
        with pytest.raises(AssertionError, match="a parameter to train"):
            DataParallel(nn.ReLU())
        with pytest.raises(UnsupportedError, match="sparse"):
            DataParallel(nn.Sequential(nn.Embedding(3, 2, sparse=True)))
        with pytest.raises(UnsupportedError, match="strategy must be None, or"):
            DataParallel(nn.Linear(2, 1), object())
    with pytest.raises(AssertionError, match="Call init_parallel_env first") as told:
        DataParallel(nn.Linear(2, 1))
    assert isinstance(told.value, StateError)


@pytest.mark.ranks(1, 2)
def test_arguments_that_are_wrong_are_told_on_the_only_rank_too() -> None:
    from data_parallel_networks import DataParallel, nn

    with world():
        with pytest.raises(AssertionError, match="group must be a Group or None, got 'nonsense'"):
            DataParallel(nn.Linear(2, 1), group="nonsense")
        for name in ("comm_buffer_size", "last_comm_buffer_size"):
            with pytest.raises(TypeError, match=f"{name} must be at least 0, got -1"):
                DataParallel(nn.Linear(2, 1), **{name: -1})


@pytest.mark.ranks(1)
def test_alone_it_says_so_and_is_the_network(tmp_path: Any) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    layer = nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="the only rank"):
        model = DataParallel(layer)
    model(paddle.ones([1, 2])).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), [[1.0], [1.0]])
    paddle.save(model.state_dict(), str(tmp_path / "state"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_state_dict(paddle.load(str(tmp_path / "state")))
    assert [name for name, _ in model.named_parameters()] == ["_layers.weight", "_layers.bias"]


@pytest.mark.ranks(2)
def test_it_keeps_nothing_alive(rank: int) -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    with world():
        layer = nn.Linear(2, 1)
        gone = weakref.ref(DataParallel(layer)._gradients)
        gc.collect()
        assert gone() is None
        layer(paddle.ones([1, 2])).sum().backward()


@pytest.mark.ranks(1)
def test_it_is_a_layer_with_the_real_ones_signatures() -> None:
    from data_parallel_networks import DataParallel, nn, paddle

    import shim.frontends.paddle_2
    import shim.frontends.paddle_3

    real = paddle.DataParallel
    assert shim.frontends.paddle_2.DataParallel is DataParallel
    assert issubclass(DataParallel, nn.Layer)
    with pytest.raises(AttributeError, match="no_such_name"):
        shim.frontends.paddle_3.no_such_name  # noqa: B018  # the access is what is tested
    for name, thing in vars(real).items():
        if inspect.isfunction(thing) and name != "_find_tensor":
            theirs, ours = (inspect.signature(getattr(one, name)).parameters.values() for one in (real, DataParallel))
            assert [(one.name, one.kind, one.default) for one in ours] == [
                (one.name, one.kind, one.default) for one in theirs
            ], name


@pytest.mark.ranks(3)
def test_the_batches_of_a_rank_are_its_own(rank: int, world_size: int) -> None:
    import paddle

    from shim.frontends._paddle.training.batch_sampler import DistributedBatchSampler

    class Numbers(paddle.io.Dataset):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, index: int) -> int:
            return index

    def of(*place: int) -> list[list[int]]:
        return list(DistributedBatchSampler(Numbers(), 2, *place))

    assert issubclass(DistributedBatchSampler, paddle.io.DistributedBatchSampler)
    theirs = inspect.signature(paddle.io.DistributedBatchSampler).parameters.values()
    ours = inspect.signature(DistributedBatchSampler).parameters.values()
    assert [(one.name, one.kind, one.default) for one in ours] == [(one.name, one.kind, one.default) for one in theirs]
    rows = [row for batch in range(0, ROWS, 2 * world_size) for row in range(batch + 2 * rank, batch + 2 * rank + 2)]
    assert [row for batch in of() for row in batch] == rows  # before initialisation, too
    with world():
        assert [row for batch in of() for row in batch] == rows
    assert of(1, 0) == [[row, row + 1] for row in range(0, ROWS, 2)]
    assert len(paddle.io.DataLoader(Numbers(), batch_sampler=DistributedBatchSampler(Numbers(), 2))) == len(of())
