"""A barrier of callers that share a store and nothing else."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from shim.core.callers import Caller
from shim.frontends.torch._errors import DistStoreError


def barrier_at(
    caller: Caller, rank: int, store: Any, group_name: str, count: int, timeout: timedelta, interval: timedelta
) -> None:
    """Wait at *store* until *count* ranks have come, looking at it again after each *interval*."""
    key = f"store_based_barrier_key:{group_name}"
    last = f"{key}:last_worker"
    store.add(key, 1)
    if store.add(key, 0) == count:
        store.set(last, "1")
    end = time.monotonic() + timeout.total_seconds()
    while not _came(store, last, min(end - time.monotonic(), interval.total_seconds())):
        if time.monotonic() >= end:
            raise caller.explain(
                DistStoreError(f"{count} ranks must come within {timeout}, and {store.add(key, 0)} have (rank {rank})")
            )


def _came(store: Any, key: str, seconds: float) -> bool:
    """Wait up to *seconds* at *store* for *key*; what the store raises but for time passing is passed on.

    A store that is not ours may have no class of errors for that alone, but it takes its time before it raises.
    """
    seconds = max(int(seconds * 1000), 1) / 1000  # torch's own stores cut what is no whole millisecond off
    begin = time.monotonic()
    try:
        store.wait([key], timedelta(seconds=seconds))
    except TimeoutError:
        return False
    except RuntimeError:
        if time.monotonic() - begin < 0.9 * seconds:
            raise
        return False
    return True
