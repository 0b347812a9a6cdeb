"""Libraries that do what no library should, in rank processes."""

from __future__ import annotations

import os
import time
from typing import Any

from shim.bench.cases import Case
from shim.bench.libraries.base import Batch, CannotError
from shim.bench.libraries.engine import Engine
from shim.bench.libraries.patterns import Array


class _Broken(Batch):
    def __init__(self, library: Any, case: Case) -> None:
        self.rank = library.place.rank

    def rewrite(self) -> None:
        pass

    def run(self, way: int = 0) -> float:
        return 0.0

    def mismatch(self) -> str | None:
        return None


class Dying(Engine):
    def batch(self, case: Case, calls: int) -> Batch:
        if self.place.rank == 1:
            os.write(1, b"last words\n")
            os._exit(3)
        return _Broken(self, case)


class Hanging(Engine):
    def batch(self, case: Case, calls: int) -> Batch:
        if self.place.rank == 1:
            time.sleep(1000)
        return _Broken(self, case)


class Refusing(Engine):
    def batch(self, case: Case, calls: int) -> Batch:
        raise CannotError("has no such thing")


class Wrong(Engine):
    """Adds up one element wrongly, on rank 1."""

    def make(self, count: int, dtype: str) -> tuple[Any, Array]:
        self.made, array = super().make(count, dtype)
        return self.made, array

    def all_reduce(self, tensors: Any) -> Any:
        call = super().all_reduce(tensors)

        def call_wrongly() -> None:
            call()
            if self.place.rank == 1:
                tensors.output[-1] += 1

        return call_wrongly


class NotStarting(Engine):
    def __init__(self, place: Any) -> None:
        raise RuntimeError("no licence")
