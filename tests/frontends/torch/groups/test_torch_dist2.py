"""Groups of torch's experimental module: at the launcher's address, without a world."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rank_numbers import check, numbers

import shim.frontends.torch.distributed as dist
from shim.errors import UnsupportedError
from shim.frontends.torch._groups import independent
from shim.frontends.torch.distributed import _dist2

LIMIT = timedelta(seconds=30)


@pytest.mark.ranks(1, 3)
def test_groups_without_a_world(rank: int, world_size: int, tmp_path: Path) -> None:
    meeting = dist.FileStore(str(tmp_path / "port"), world_size)
    if rank == 0:
        store = dist.TCPStore("localhost", 0, world_size, True, wait_for_workers=False, multi_tenant=True)
        meeting.set("port", str(store.port))
    port = meeting.get("port").decode()
    with pytest.MonkeyPatch.context() as patch:
        variables = {"RANK": rank, "WORLD_SIZE": world_size, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        for name, value in variables.items():
            patch.setenv(name, str(value))
        group = _dist2.new_group("gloo", LIMIT, "cpu")
        assert not dist.is_initialized()
        assert (group.rank(), group.size(), group.core.timeout) == (rank, world_size, 30.0)
        tensor = numbers(rank, 3)
        dist.all_reduce(tensor, group=group)
        check("numpy", tensor, sum(numbers(other, 3) for other in range(world_size)))
        made: list[Any] = []
        _dist2.register_backend("mine", lambda *given, **options: made.append((given[1:], options)) or "made")
        assert _dist2.new_group("mine", LIMIT, "cuda", option=5) == "made"
        assert made == [((rank, world_size, LIMIT, "cuda"), {"option": 5})]
        with pytest.raises(ValueError, match="'mine', which is registered"):
            _dist2.register_backend("mine", print)
        independent._factories.clear()
    meeting.barrier("end", world_size)
    group.shutdown()


def test_a_thread_uses_a_group() -> None:
    outer, inner = (dist.ProcessGroupGloo(dist.HashStore(), 0, 1) for _ in range(2))
    assert _dist2.current_process_group() is None
    others: list[Any] = []
    with _dist2.process_group(outer):
        with _dist2.process_group(inner):
            assert _dist2.current_process_group() is inner
            thread = threading.Thread(target=lambda: others.append(_dist2.current_process_group()))
            thread.start()
            thread.join()
        assert _dist2.current_process_group() is outer
    assert others == [None]
    with pytest.raises(TypeError, match="pg must be a ProcessGroup"):
        _dist2.process_group(5)


def test_what_is_refused() -> None:
    for arguments, kind in (
        (("foo", LIMIT, "cpu"), AssertionError),
        (("gloo", 5, "cpu"), TypeError),
        (("gloo", LIMIT, "cuda"), UnsupportedError),
    ):
        with pytest.raises(kind):
            _dist2.new_group(*arguments)
    with pytest.raises(AssertionError, match="no other options, got option"):
        _dist2.new_group("gloo", LIMIT, "cpu", option=1)
    with pytest.raises(ValueError):
        _dist2.register_backend("gloo", print)
