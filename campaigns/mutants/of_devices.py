"""Mistakes in the engines for tensors on devices."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant

_ON_ACCELERATORS = ("tests/core/engines/accelerators",)


def _on_accelerators(name: str, file: str, before: str, after: str) -> Mutant:
    return Mutant(f"devices/{name}", f"shim/core/engines/accelerators/{file}", before, after, _ON_ACCELERATORS)


def _on_cuda(name: str, file: str, before: str, after: str) -> Mutant:
    return Mutant(f"devices/{name}", f"shim/core/engines/nccl/{file}", before, after, ("tests/core/engines/nccl",))


def _on_links(name: str, before: str, after: str) -> Mutant:
    file = "shim/core/engines/devices/watched_links.py"
    return Mutant(f"devices/{name}", file, before, after, ("tests/core/engines/nccl",))


def _on_both(name: str, file: str, before: str, after: str) -> Mutant:
    return Mutant(f"devices/{name}", f"shim/core/engines/devices/{file}", before, after, _ON_ACCELERATORS)


MUTANTS: tuple[Mutant, ...] = (
    _on_both("aborted-is-ended", "watched_links.py", "one.end.is_cut_off = True", "pass"),
    _on_both(
        "losses-not-seen",
        "watched_links.py",
        "if (loss := self._loss()) is not None:",
        "if (loss := None) is not None:",
    ),
    _on_both(
        "failed-message-not-told",
        "messages.py",
        "                links.give_up(EngineError(why))\n",
        "                links.end(EngineError(why))\n",
    ),
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
    _on_cuda(
        "connecting-not-ended",
        "device_links.py",
        "made = self.connected(partial(self._made_on_device, make), self._drop)",
        "made = self._made_on_device(make)",
    ),
    _on_cuda(
        "one-lock-for-all-links",
        "device_link.py",
        "self.lock = threading.RLock()",
        'self.lock = vars(threading).setdefault("_of_all_links", threading.RLock())',
    ),
    _on_cuda("links-without-a-lock", "device_link.py", "self.lock = threading.RLock()", "self.lock = None"),
    _on_cuda(
        "asked-while-it-is-destroyed",
        "device_link.py",
        "number = 0 if self._is_over else self._nccl.async_error(self._handle)",
        "number = self._nccl.async_error(self._handle)",
    ),
    _on_cuda("ended-twice", "device_link.py", "is_first, self._is_over = not self._is_over, True", "is_first = True"),
    _on_cuda(
        "captured-events-asked",
        "driver.py",
        "return self.is_captured or self._cuda.is_ready(self.handle)",
        "return self._cuda.is_ready(self.handle)",
    ),
    _on_cuda(
        "events-let-go-without-a-context",
        "driver.py",
        "if os.getpid() != self._process or self._functions.cuCtxPushCurrent_v2(context):",
        "if self._functions.cuEventDestroy_v2(event) or True:",
    ),
    _on_cuda("streams-that-block", "driver.py", "_NON_BLOCKING = 1 ", "_NON_BLOCKING = 0 "),
    _on_cuda(
        "watch-ends-captures",
        "device_links.py",
        "        with self.cuda.beside_captures():\n            return super()._let_go()",
        "        return super()._let_go()",
    ),
    _on_cuda(
        "rooms-let-go-early",
        "driver.py",
        '            yield at.value or 0\n        finally:\n            self.call("cuMemFreeAsync", at, stream)',
        '            self.call("cuMemFreeAsync", at, stream)\n            yield at.value or 0\n        finally:\n            pass',
    ),
    _on_cuda("pools-keep-nothing", "driver.py", "if most.value < _KEPT:", "if False:"),
    _on_cuda("tensors-let-go-early", "device_links.py", "        if not end.is_captured:\n", "        if False:\n"),
    _on_cuda("begins-before-the-stream", "engine.py", "            begin.make_wait(own)\n", ""),
    _on_cuda("message-before-the-stream", "engine.py", "            message.begin.make_wait(stream)\n", ""),
    _on_cuda(
        "stream-of-another-device",
        "engine.py",
        "            with self.links.on_device():  # whose stream it is that CuPy tells\n                stream = self.links.stream_for(request)\n",
        "            stream = self.links.stream_for(request)\n",
    ),
    _on_cuda(
        "wrong-index-of-a-kernel",
        "combine.cu",
        "(blockIdx.x) * blockDim.x + threadIdx.x",
        "(blockIdx.x) * gridDim.x + threadIdx.x",
    ),
    _on_cuda("step-too-long", "combine.cu", "(gridDim.x) * blockDim.x;", "(gridDim.x + 1) * blockDim.x;"),
    _on_cuda("one-half-of-a-pool", "pool_turns.py", "pool.at + self._number % 2 * self._half", "pool.at"),
    _on_cuda("filled-is-not-awaited", "pool_turns.py", "            self._await(self._filled)\n", ""),
    _on_cuda("read-is-not-awaited", "pool_turns.py", "            self._await(self._read)  #", "            #"),
    _on_cuda("builtins-not-found", "kernels.py", '            load_beside(path, "libnvrtc-builtins.so*")\n', ""),
    _on_cuda("shared-in-a-graph", "one_device_link.py", "if self._cuda.is_capturing(stream):", "if False:"),
    _on_links("operations-of-any-length", "return time.monotonic() - since > self.timeout", "return False"),
    _on_links("errors-not-told", '        self.under.give_up(f"{error}".partition("\\n")[0])\n', ""),
    _on_links("kept-for-the-watch", "time.monotonic()))\n        self._let_go()\n", "time.monotonic()))\n"),
    _on_cuda("alone-in-one-piece", "engine.py", "_MOST_SCALED_RIGHT if is_cut else max(size, 1)", "max(size, 1)"),
    _on_cuda(
        "graphs-awaited-for-ever", "device_links.py", "time.monotonic() + _FOR_AN_END, 0", "time.monotonic() + 1000, 0"
    ),
    _on_cuda(
        "launches-end-captures",
        "engine.py",
        "with self._launching(own), self.cuda.beside_captures():",
        "with self._launching(own):",
    ),
)
