"""``mindspore.Model`` and ``mindspore.amp.build_train_network``, which reduce gradients in the data-parallel mode. Import this only where MindSpore is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from shim.core.callers import Caller
from shim.errors import UnsupportedError
from shim.frontends.mindspore._training.parallel_mode import DATA_PARALLEL, degree, is_data_parallel
from shim.frontends.mindspore._training.train_cells import reduce_gradients

__all__ = ["Model", "build_train_network"]

_MODEL = Caller("mindspore.Model")
_TRAIN = Caller("mindspore.Model.train")
_FIT = Caller("mindspore.Model.fit")
_BUILD = Caller("mindspore.amp.build_train_network")

_mindspore: Any = sys.modules["mindspore"]
_amp: Any = sys.modules["mindspore.train.amp"]
_callbacks: Any = sys.modules["mindspore.train.callback"]
if TYPE_CHECKING:

    class _Model:
        """What mypy, which does not see MindSpore, is to know of it."""

        _optimizer: Any

        def __init__(self, *arguments: Any, **named: Any) -> None: ...
        def _build_train_network(self) -> Any: ...
        def train(self, *arguments: Any) -> None: ...
        def fit(self, *arguments: Any) -> None: ...

else:
    _Model = _mindspore.Model

# They decide by the mean of a value over the ranks, which they ask MindSpore for.
_DECIDING = (_callbacks.EarlyStopping, _callbacks.ReduceLROnPlateau)


class Model(_Model):
    """MindSpore's own, which trains *network* by *loss_fn* and *optimizer* and evaluates it by *metrics*, *eval_network* and *eval_indexes*.

    In the data-parallel mode, the ranks of the world reduce the gradients of a network that this model builds, at *amp_level* and with *kwargs*.
    Raises: RuntimeError before initialisation in that mode; UnsupportedError in it for a *boost_level* other than "O0" and for a loss scale
    that changes.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/train/mindspore.train.Model.html
    """

    def __init__(
        self,
        network: Any,
        loss_fn: Any = None,
        optimizer: Any = None,
        metrics: Any = None,
        eval_network: Any = None,
        eval_indexes: Any = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        **kwargs: Any,
    ) -> None:
        if is_data_parallel() and boost_level != "O0":
            raise _MODEL.explain(
                UnsupportedError(f"boost_level must be 'O0' in the data-parallel mode, got {boost_level!r}")
            )
        super().__init__(
            network, loss_fn, optimizer, metrics, eval_network, eval_indexes, amp_level, boost_level, **kwargs
        )
        if is_data_parallel():
            self._parallel_mode = DATA_PARALLEL
            self._device_number = degree(_MODEL)

    def _build_train_network(self) -> Any:
        built = super()._build_train_network()
        if self._optimizer is not None:
            _complete(_MODEL, built)
        return built

    def train(
        self,
        epoch: int,
        train_dataset: Any,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train for *epoch* epochs of *train_dataset* from *initial_epoch* on, calling *callbacks*; the rest is MindSpore's (see *sink_size*, *dataset_sink_mode*).

        Raises: UnsupportedError in the data-parallel mode for *callbacks* that ask MindSpore for a mean over the ranks.
        See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/train/mindspore.train.Model.html
        """
        _refuse_deciding(_TRAIN, callbacks)
        super().train(epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch)

    def fit(
        self,
        epoch: int,
        train_dataset: Any,
        valid_dataset: Any = None,
        valid_frequency: Any = 1,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train as ``train`` does, and evaluate by *valid_dataset* every *valid_frequency* epochs.

        Raises: UnsupportedError in the data-parallel mode for *callbacks* that ask MindSpore for a mean over the ranks.
        See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/train/mindspore.train.Model.html
        """
        _refuse_deciding(_FIT, callbacks)
        super().fit(
            epoch,
            train_dataset,
            valid_dataset,
            valid_frequency,
            callbacks,
            dataset_sink_mode,
            valid_dataset_sink_mode,
            sink_size,
            initial_epoch,
        )


def _refuse_deciding(caller: Caller, callbacks: Any) -> None:
    """Refuse *callbacks* that in the data-parallel mode would decide on each rank by itself."""
    for one in callbacks if isinstance(callbacks, Iterable) else (callbacks,):
        if isinstance(one, _DECIDING) and is_data_parallel():
            raise caller.explain(
                UnsupportedError(
                    f"callbacks must not have a {type(one).__name__}, which asks mindspore's own process groups for a mean over the ranks\n"
                    "Write a callback that averages the value with all_reduce."
                )
            )


def build_train_network(
    network: Any,
    optimizer: Any,
    loss_fn: Any = None,
    level: str = "O0",
    boost_level: str = "O0",
    **kwargs: Any,
) -> Any:
    """Return MindSpore's cell for a step in which *optimizer* trains *network* by *loss_fn*, with mixed precision as *level* and *kwargs* say.

    In the data-parallel mode the ranks of the world reduce its gradients.
    Raises: UnsupportedError in that mode for a *boost_level* other than "O0" and for a loss scale that changes.
    See: https://www.mindspore.cn/docs/en/r2.7.0/api_python/amp/mindspore.amp.build_train_network.html
    """
    return _complete(_BUILD, _amp.build_train_network(network, optimizer, loss_fn, level, boost_level, **kwargs))


def _complete(caller: Caller, cell: Any) -> Any:
    """Have *cell*, which MindSpore has built to train for one process, reduce gradients in the data-parallel mode; return it."""
    if is_data_parallel():
        if type(cell) is not _mindspore.nn.TrainOneStepCell:
            raise caller.explain(
                UnsupportedError(
                    f"builds a {type(cell).__name__}, which in the data-parallel mode communicates through mindspore's own process groups\n"
                    "Leave out boost_level, and use a fixed loss scale."
                )
            )
        reduce_gradients(caller, cell)
    return cell
