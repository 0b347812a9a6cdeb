"""The same calls on torch's stores and on ours end in the same results and classes of errors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch.distributed

import shim.frontends.torch.distributed as dist
from shim.errors import ShimError

KINDS = ("hash", "file", "tcp", "prefix")
SHORT = timedelta(milliseconds=60)
Call = tuple[str, Callable[[Any], Any]]

# Not run with torch: adding to text that is no number, or setting more keys than values, ends the server of torch's
# TCPStore and every connection with it; a timeout of zero waits for ever in its HashStore; and text with a lone
# surrogate is a TypeError there that depends on pybind.
CALLS: list[Call] = [
    ("empty", lambda s: s.list_keys()),
    ("set", lambda s: s.set("a", "1")),
    ("set bytes", lambda s: s.set("b", b"\x00\xff")),
    ("get", lambda s: s.get("a")),
    ("get bytes", lambda s: s.get("b")),
    ("unicode", lambda s: (s.set("ü", "é"), s.get("ü"))),
    ("no value", lambda s: (s.set("e", ""), s.get("e"))),
    ("no key", lambda s: (s.set("", "x"), s.get(""))),
    ("key of bytes", lambda s: (s.set(b"bk", "x"), s.get("bk"))),
    ("get absent", lambda s: s.get("absent")),
    ("add", lambda s: [s.add("n", 1), s.add("n", 5), s.add("n", -10), s.add("n", True)]),
    ("added", lambda s: s.get("n")),
    ("add to text", lambda s: (s.set("t", "12"), s.add("t", 1))),
    ("add too much", lambda s: s.add("n", 2**63)),
    ("add no integer", lambda s: s.add("n", 1.5)),
    ("add text", lambda s: s.add("n", "1")),
    ("append", lambda s: (s.append("ap", "x"), s.append("ap", "yz"), s.get("ap"))),
    ("compare absent with nothing", lambda s: s.compare_set("c", "", "v1")),
    ("compare absent with text", lambda s: s.compare_set("c2", "q", "v1")),
    ("which sets nothing", lambda s: s.check(["c2"])),
    ("compare with wrong", lambda s: s.compare_set("c", "q", "v2")),
    ("compare with nothing", lambda s: s.compare_set("c", "", "v3")),
    ("compare with right", lambda s: (s.compare_set("c", "v1", "v2"), s.get("c"))),
    ("compare empty", lambda s: (s.set("ce", ""), s.compare_set("ce", "", "new"))),
    ("compare bytes", lambda s: s.compare_set("c", b"v2", b"v5")),
    ("delete", lambda s: s.delete_key("c")),
    ("delete absent", lambda s: s.delete_key("c")),
    ("check", lambda s: [s.check(["a", "b"]), s.check(["a", "nope"]), s.check([]), s.check(("a",))]),
    ("wait", lambda s: s.wait(["a", "b"])),
    ("wait with a limit", lambda s: s.wait(["a"], timedelta(seconds=1))),
    ("wait for absent", lambda s: s.wait(["a", "absent"])),
    ("wait for absent with a limit", lambda s: s.wait(["absent"], SHORT)),
    ("wait for nothing", lambda s: s.wait([])),
    ("wait for text", lambda s: s.wait("a")),
    ("wait for numbers", lambda s: s.wait([1])),
    ("multi_set", lambda s: s.multi_set(["m1", "m2"], ["1", b"2"])),
    ("multi_get", lambda s: s.multi_get(["m2", "m1"])),
    ("multi_get absent", lambda s: s.multi_get(["m1", "absent"])),
    ("multi_get nothing", lambda s: s.multi_get([])),
    ("queue_len", lambda s: s.queue_len("q")),
    ("queue_push", lambda s: (s.queue_push("q", "1"), s.queue_push("q", b"2"), s.queue_len("q"))),
    ("a queue is there", lambda s: (s.check(["q"]), s.wait(["q"], SHORT))),
    ("queue_pop", lambda s: [s.queue_pop("q"), s.queue_pop("q", False)]),
    ("queue_pop nothing", lambda s: s.queue_pop("q", False)),
    ("queue_pop waiting", lambda s: s.queue_pop("q", block=True)),
    ("an empty queue is not there", lambda s: s.check(["q"])),
    ("clone", lambda s: s.clone().get("a")),
    ("barrier of one", lambda s: s.barrier("bar", 1)),
    ("barrier of two", lambda s: s.barrier("bar2", 2, SHORT)),
    ("set a number", lambda s: s.set("a", 1)),
    ("set under a number", lambda s: s.set(1, "a")),
    ("get None", lambda s: s.get(None)),
    ("set_timeout number", lambda s: s.set_timeout(1)),
    ("timeout", lambda s: s.timeout),
    ("extended", lambda s: s.has_extended_api()),
    ("num_keys", lambda s: s.num_keys()),
    ("keys", lambda s: sorted(s.list_keys())),
]

# What ours does instead, and why.
QUEUES = "torch's FileStore has no queues, ours has"
COUNTS = "torch's FileStore keeps counts of its own among the keys, one of which it shows without its first letter"
KEYS = ["", "a", "ap", "b", "bar/last_member", "bar/num_members", "bar2/num_members", "bk", "ce", "e", "m1", "m2"]
KEYS += ["n", "t", "ü"]
DIFFERENT: dict[str, dict[str, tuple[Any, str]]] = {
    "file": {
        "empty": ([], COUNTS),
        "delete absent": (False, "torch's FileStore says that it deleted what was not there"),
        "queue_len": (0, QUEUES),
        "queue_push": ((None, None, 2), QUEUES),
        "a queue is there": ((True, None), QUEUES),
        "queue_pop": ([b"1", b"2"], QUEUES),
        "queue_pop nothing": (dist.QueueEmptyError, QUEUES),
        "queue_pop waiting": (dist.DistStoreError, QUEUES),
        "extended": (True, "torch's FileStore answers for methods that it has"),
        "num_keys": (15, COUNTS),
        "keys": (
            KEYS,
            COUNTS,
        ),
    },
    "tcp": {
        "num_keys": (15, "torch's TCPStore has a count of its own among its keys"),
        "keys": (
            KEYS,
            "torch's TCPStore counts a barrier's members on its server, not under keys",
        ),
    },
}


def make(module: ModuleType, kind: str, folder: Path) -> Any:
    if kind == "hash":
        return module.HashStore()
    if kind == "file":
        return module.FileStore(str(folder / module.__name__), 1)
    if kind == "tcp":
        return module.TCPStore("localhost", 0, 1, True, wait_for_workers=False)
    return module.PrefixStore("before", module.HashStore())


def outcome(call: Callable[[Any], Any], store: Any) -> Any:
    try:
        return call(store)
    except Exception as error:  # of whatever class: that is what is compared
        if isinstance(store, dist.Store) and not isinstance(error, ShimError):
            raise
        return error


def same_class(ours: Exception, theirs: Exception) -> bool:
    """Tell whether *ours* is caught by what catches *theirs*; torch's own classes are ours of the same name."""
    kind = type(theirs)
    expected = getattr(dist, kind.__name__) if kind.__module__.startswith("torch") else kind
    return isinstance(ours, expected)


@pytest.mark.differential("torch", calls=len(CALLS))
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_calls(kind: str, tmp_path: Path) -> None:
    ours, theirs = make(dist, kind, tmp_path), make(torch.distributed, kind, tmp_path)
    for store in (ours, theirs):
        store.set_timeout(SHORT)
    used = set()
    for name, call in CALLS:
        mine, real = outcome(call, ours), outcome(call, theirs)
        if name in DIFFERENT.get(kind, {}):
            instead, why = DIFFERENT[kind][name]
            used.add(name)
            assert (
                type(mine) is instead or isinstance(mine, instead) if isinstance(instead, type) else mine == instead
            ), why
        elif isinstance(real, Exception):
            assert isinstance(mine, Exception), f"{name}: torch raised {real!r}, ours gave {mine!r}"
            assert same_class(mine, real), f"{name}: torch raised {real!r}, ours {mine!r}"
        else:
            assert mine == real, name
    assert used == set(DIFFERENT.get(kind, {}))
