"""The tensors of one call, as flat pieces of theirs that are the ranks' parts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from shim.errors import TensorError


@dataclass(frozen=True)
class Parts:
    """One flat tensor for each part, and ``whole``, of which they are pieces; where each of them has memory of its own, there is none."""

    each: Sequence[Any]
    whole: Any = None

    def __len__(self) -> int:
        return len(self.each)

    def is_even(self) -> bool:
        """Tell whether all parts have one size."""
        return len({part.numel() for part in self.each}) == 1

    def sizes(self) -> list[int]:
        """Return the number of elements of each part."""
        return [part.numel() for part in self.each]


def parts_of(tensors: Any, places: Sequence[tuple[int, int]]) -> Parts:
    """Return the parts of *tensors*, None, one or a sequence, which a request has at *places*."""
    if tensors is None or not places:
        return Parts(())
    if isinstance(tensors, (list, tuple)):
        return Parts([flat(tensor) for tensor in tensors])
    whole = flat(tensors)
    return Parts(whole.split([size // whole.element_size() for _, size in places]), whole)


def flat(tensor: Any) -> Any:
    """Return the elements of *tensor*, which is contiguous, in one dimension and without what autograd knows of them.

    Raises TensorError where they have an order in memory that is the device's own, of which torch gives a copy alone.
    """
    found = tensor.detach().as_strided((tensor.numel(),), (1,))  # whatever it says of dimensions with one element
    if found.data_ptr() != tensor.data_ptr():
        raise TensorError(
            "{tensor} must have the usual order of elements in memory, got one in a format of its device's own\n"
            "Convert it, as by torch_npu.npu_format_cast(tensor, 2), and read the result there."
        )
    return found


def check_is_torchs(library: str, tensors: Any) -> None:
    """Raise TensorError for what *library* cannot be given, as torch's backends take torch's tensors alone."""
    torch = sys.modules["torch"]
    for tensor in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise TensorError(
                f"{{tensor}} must be torch's for {library}, which torch's backend serves, got a "
                f"{type(tensor).__module__}.{type(tensor).__qualname__}\nHand its memory to torch by torch.from_dlpack, or set SHIM_STAGE=host."
            )


def write(target: Any, source: Any) -> None:
    """Copy the elements of *source* to *target*, unless they are there."""
    if target.data_ptr() != source.data_ptr():
        with writing(target):
            target.copy_(source)


def writing(target: Any) -> AbstractContextManager[object]:
    """Return a context in which *target* may be written: one that was made in torch's inference mode, there alone."""
    mode: AbstractContextManager[object] = sys.modules["torch"].inference_mode(target.is_inference())
    return mode
