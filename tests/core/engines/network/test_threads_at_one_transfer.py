"""Several threads at the transfers of one rank: each is carried on by one at a time, and all of them end."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from shim.core.engines.mpi.pending import Transfer
from shim.core.engines.network.carrier import Carrier
from shim.core.engines.network.link import Pending

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


class Later:
    """Ends at the second look."""

    def __init__(self) -> None:
        self._looks = 0

    def wait(self, seconds: float) -> bool:
        self._looks += 1
        time.sleep(random.choice((0, 1e-4)))
        return self._looks > random.randrange(3)


class Group:
    """Takes arrivals, as the native group."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.given_up: list[str] = []

    def take_arrivals(self, packets: list[bytes]) -> bool:
        self.taken += packets
        return True

    def give_up(self, why: str) -> None:
        self.given_up.append(why)


class LetsOthersRun(list[Any]):
    """A list that lets other threads run while it is looked whether anything is in it."""

    def __bool__(self) -> bool:
        time.sleep(1e-4)
        return len(self) > 0


def test_an_exchange_is_carried_on_by_one_thread_at_a_time() -> None:
    def gather(packet: bytes) -> Generator[Pending, None, list[bytes]]:
        yield Later()
        return [packet]

    place: Any = SimpleNamespace(ranks=(0,), rank=0, key="test")
    control: Any = SimpleNamespace(is_gone=lambda rank: False)
    carrier = Carrier(control, place, gather)
    group: Any = Group()
    carrier._group = group
    carrier._exchanges = LetsOthersRun()
    for number in range(ROUNDS):
        # With no seconds for it, a call leaves the exchange to a thread. The next call comes while that one finds nothing more to do.
        carrier.arrived(b"%d" % number, number, number % 2 == 0)
        carrier.wait_for_exchange(lambda: None)
    assert group.given_up == []
    assert group.taken == [b"%d" % number for number in range(ROUNDS)]
