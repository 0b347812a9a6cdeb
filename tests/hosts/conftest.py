"""Two or three hosts for a test, made once for each test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from namespaces import Network, make_hosts


@pytest.fixture(scope="session")
def two_hosts() -> Iterator[Network]:
    with make_hosts(2) as network:
        yield network


@pytest.fixture(scope="session")
def three_hosts() -> Iterator[Network]:
    with make_hosts(3) as network:
        yield network


@pytest.fixture(autouse=True)
def _heal(request: pytest.FixtureRequest) -> Iterator[None]:
    """Undo after each test what it has cut, and kill what it has left on the hosts."""
    yield
    for name in ("two_hosts", "three_hosts"):
        if name in request.fixturenames:
            network: Network = request.getfixturevalue(name)
            network.clear()
