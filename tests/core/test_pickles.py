"""What comes over a network is unpickled only where a rank of the job has made it."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from shim.core import pickles
from shim.errors import EngineError


def group_with(key: bytes) -> Any:
    return SimpleNamespace(seal_key=key)


def test_on_one_host_it_is_the_plain_pickle() -> None:
    assert pickles.packed(group_with(b""), {"a": 1}) == pickle.dumps({"a": 1})


def test_a_sealed_object_comes_back() -> None:
    group = group_with(b"key")
    assert pickles.unpacked(group, bytes(pickles.packed(group, {"a": [1, 2]}))) == {"a": [1, 2]}


class Trap:
    """Fails the test when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("it was unpickled",)


@pytest.mark.parametrize("way", ["another key", "no seal", "changed", "cut", "nothing"])
def test_what_no_rank_has_sent_is_not_unpickled(way: str) -> None:
    sealed = pickles.packed(group_with(b"key"), Trap())
    sent = {
        "another key": pickles.packed(group_with(b"other"), Trap()),
        "no seal": bytearray(pickle.dumps(Trap())),
        "changed": bytes([sealed[0] ^ 1]) + sealed[1:],
        "cut": sealed[:-1],
        "nothing": b"",
    }
    with pytest.raises(EngineError, match="not unpickled"):
        pickles.unpacked(group_with(b"key"), sent[way])
