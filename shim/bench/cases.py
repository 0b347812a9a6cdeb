"""What is measured: a collective of so many ranks on so many bytes of a dtype, and how its elements are shared out; and the machine itself."""

from __future__ import annotations

from dataclasses import dataclass

COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier", "send_receive", "all_gather_unequal",
)  # fmt: skip
IN_PLACE = ("all_reduce", "broadcast")
COMPUTING = ("all_reduce", "reduce_scatter")  # for which it matters what the elements are
WITHOUT_SIZE = ("barrier",)
NO_DTYPE = "float32"  # of a case without elements
DTYPES = {"float32": 4, "bfloat16": 2, "int64": 8}  # bytes of an element
SIZES = tuple(8 << shift for shift in (0, 3, 6, 9, 11, 13, 15, 17, 19, 20, 21, 23, 25))  # bytes: 8 B to 256 MB
MEASURED_BYTES = 2 << 30  # of all ranks' tensors of a case: every size on 2 ranks
CROWDED_BYTES = 512 << 20  # the same with more ranks than processors, where larger ones take hours

_BATCH_BYTES = 256 * 1024  # of the tensors of one batch of calls, which should stay in a core's own cache
_LARGEST_BATCH = 32


@dataclass(frozen=True, order=True)
class Case:
    """One measurement. ``size`` is in bytes per rank and counts, as docs/performance.md says,

    all_reduce, broadcast, send_receive: the tensor; all_gather: a rank's input, of which every rank gets all;
    all_gather_unequal: the mean of the inputs; reduce_scatter, all_to_all: a rank's input, of which it keeps or gets one part
    per rank. A barrier has none.
    """

    collective: str
    ranks: int
    dtype: str
    size: int

    def __str__(self) -> str:
        size = "" if self.collective in WITHOUT_SIZE else f" of {size_text(self.size)} {self.dtype}"
        return f"{self.collective}{size} on {self.ranks} ranks"

    @property
    def count(self) -> int:
        """Elements per rank: those of ``size`` bytes, and at least one for each rank where they are cut into parts."""
        if self.collective in WITHOUT_SIZE:
            return 0
        elements = max(1, self.size // DTYPES[self.dtype])
        if self.collective in ("reduce_scatter", "all_to_all"):
            return -(-elements // self.ranks) * self.ranks
        return elements

    @property
    def bytes(self) -> int:
        """The bytes per rank that are measured: ``size``, rounded up where it cannot be cut into as many parts as ranks."""
        return self.count * DTYPES[self.dtype]

    @property
    def parts(self) -> list[int]:
        """Elements of each rank's input; they differ in an all_gather_unequal, where rank r gives r + 1 shares."""
        if self.collective != "all_gather_unequal":
            return [self.count] * self.ranks
        total, shares = self.count * self.ranks, self.ranks * (self.ranks + 1) // 2
        parts = [total * (rank + 1) // shares for rank in range(self.ranks - 1)]
        return [*parts, total - sum(parts)]

    def output_count(self, rank: int) -> int:
        """Elements of *rank*'s output."""
        if self.collective in ("all_gather", "all_gather_unequal"):
            return sum(self.parts)
        return self.count // self.ranks if self.collective == "reduce_scatter" else self.count

    @property
    def batch(self) -> int:
        """Calls timed together: many of small tensors, each with tensors of its own, one of large ones."""
        if self.collective in WITHOUT_SIZE:
            return _LARGEST_BATCH
        return max(1, min(_LARGEST_BATCH, _BATCH_BYTES // max(1, self._bytes_of_a_call)))

    @property
    def memory(self) -> int:
        """Bytes of all ranks' tensors together."""
        return self.batch * self._bytes_of_a_call * self.ranks

    @property
    def _bytes_of_a_call(self) -> int:
        return (max(self.parts, default=0) + self.output_count(0)) * DTYPES[self.dtype]


def size_text(size: int) -> str:
    """Return *size* bytes as one writes it: 8 B, 4 KB, 16 MB."""
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} B"


LINE = "line_round_trip"  # one cache line, there and back between ranks 0 and 1
MEMORY_BYTES = {  # copied from a private tensor to another by all ranks at once
    "memcpy_cache": 128 * 1024,
    "memcpy_dram": 128 * 1024 * 1024,
}


def machine_cases(ranks: int) -> list[Case]:
    """Return the cases that say what *ranks* processes of this machine can do at once."""
    return [Case(LINE, ranks, "int64", 8), *(Case(name, ranks, "int64", size) for name, size in MEMORY_BYTES.items())]
