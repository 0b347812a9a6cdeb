"""Mistakes in the engines for tensors on devices."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant

_ON_ACCELERATORS, _ON_CUDA = ("tests/core/engines/accelerators",), ("tests/core/engines/nccl",)


def _on_accelerators(name: str, file: str, before: str, after: str) -> Mutant:
    return Mutant(f"devices/{name}", f"shim/core/engines/accelerators/{file}", before, after, _ON_ACCELERATORS)


def _on_both(name: str, file: str, before: str, after: str) -> Mutant:
    return Mutant(f"devices/{name}", f"shim/core/engines/devices/{file}", before, after, _ON_ACCELERATORS)


MUTANTS: tuple[Mutant, ...] = (
    _on_both("aborted-is-ended", "watched_links.py", "end.is_cut_off = not _is_surely_reached(end)", "del end"),
    _on_both(
        "losses-not-seen",
        "watched_links.py",
        "if (loss := self._loss()) is not None:",
        "if (loss := None) is not None:",
    ),
    _on_both("failed-message-not-told", "messages.py", "                messages.under.give_up(why)\n", ""),
    _on_both("closing-gives-up", "messages.py", "except StateError:", "except NotImplementedError:"),
    _on_accelerators("before-the-callers-stream", "links.py", "begin.make_wait(link.stream)", "pass"),
    _on_accelerators(
        "one-link-for-all", "links.py", "self._of(direction, direction, tag)", "self._of(-1, direction, tag)"
    ),
    _on_accelerators("another-backend", "backends.py", "if must_serve and not serves:", "if False:"),
    _on_accelerators("sum-too-large", "parts.py", '== "float16"  # whose', '== "none"  # whose'),
    _on_accelerators("copies-for-views", "parts.py", "if found.data_ptr() != tensor.data_ptr():", "if False:"),
    _on_accelerators("written-outside-inference", "parts.py", "target.is_inference()", "False"),
    _on_accelerators(
        "store-kept-open", "links.py", "            link.meeting.close()\n        self._made", "        self._made"
    ),
    Mutant(
        "devices/connecting-not-ended",
        "shim/core/engines/nccl/device_links.py",
        "made = self.connected(partial(self._made_on_device, make), self._drop)",
        "made = self._made_on_device(make)",
        _ON_CUDA,
    ),
    Mutant(
        "devices/one-lock-for-all-links",
        "shim/core/engines/nccl/device_link.py",
        "self.lock = threading.RLock()",
        'self.lock = vars(threading).setdefault("_of_all_links", threading.RLock())',
        _ON_CUDA,
    ),
    Mutant(
        "devices/asked-while-it-is-destroyed",
        "shim/core/engines/nccl/device_link.py",
        "number = 0 if self._is_over else self._nccl.async_error(self._handle)",
        "number = self._nccl.async_error(self._handle)",
        _ON_CUDA,
    ),
    Mutant(
        "devices/captured-events-asked",
        "shim/core/engines/nccl/driver.py",
        "return self.is_captured or self._cuda.is_ready(self.handle)",
        "return self._cuda.is_ready(self.handle)",
        _ON_CUDA,
    ),
    Mutant(
        "devices/events-let-go-without-a-context",
        "shim/core/engines/nccl/driver.py",
        "if os.getpid() != self._process or self._functions.cuCtxPushCurrent_v2(context):",
        "if self._functions.cuEventDestroy_v2(event) or True:",
        _ON_CUDA,
    ),
)
