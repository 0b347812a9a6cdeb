"""The tensors of one call, as flat pieces of theirs that are the ranks' parts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shim.errors import TensorError

if TYPE_CHECKING:
    pass

__all__ = ["Parts", "check_is_torchs", "flat", "parts_of"]


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
    """Return the elements of *tensor*, which is contiguous, in one dimension and without what autograd knows of them."""
    return tensor.detach().as_strided((tensor.numel(),), (1,))  # whatever it says of dimensions with one element


def check_is_torchs(library: str, tensors: Any) -> None:
    """Raise TensorError for what *library* cannot be given, as torch's backends take torch's tensors alone."""
    torch = sys.modules["torch"]
    for tensor in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise TensorError(
                f"{{tensor}} must be torch's for {library}, which torch's backend serves, got a "
                f"{type(tensor).__module__}.{type(tensor).__qualname__}\nHand its memory to torch by torch.from_dlpack, or set SHIM_STAGE=host."
            )
