"""Several threads at the transfers of one rank: each is carried on by one at a time, and all of them end."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from shim.core.engines.mpi.pending import Transfer

ROUNDS = 300


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Request:
    """An MPI request that ends at one of the next tests, in the middle of which other threads may run."""

    def __init__(self) -> None:
        self.tests_left = random.randrange(3)
        self.is_tested = False

    def Test(self) -> bool:
        assert not self.is_tested, "two threads test one request"
        self.is_tested = True
        time.sleep(0)
        self.is_tested = False
        self.tests_left -= 1
        return self.tests_left < 0


def test_a_transfer_of_mpi_is_tested_by_one_thread_at_a_time() -> None:
    for _ in range(ROUNDS):
        requests = [Request() for _ in range(4)]
        ended: list[Transfer] = []
        transfer = Transfer(requests, 8, RuntimeError, ended.append)
        failures: list[BaseException] = []

        def wait(transfer: Transfer = transfer, failures: list[BaseException] = failures) -> None:
            try:
                assert transfer.wait(10.0)
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert ended == [transfer]
        assert all(request.tests_left < 0 for request in requests)
