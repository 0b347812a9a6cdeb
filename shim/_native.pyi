"""The native engine for ranks on one host."""

from collections.abc import Callable, Sequence
from typing import Literal

from shim.core.tensors import Reader
from shim.errors import ShimError

protocol_version: int

def set_reader_chooser(chooser: Callable[[type], Reader]) -> None:
    """
    Set the function that says how tensors of a type are read: shim.core.tensors.reader_for.
    """

def tensor_key(outputs: object | None, inputs: object | None, devices: bool = False) -> bytes:
    """
    Bytes that are the same for tensors, or lists of them, of the same dtypes and shapes.
    """

def call_was_begun() -> bool:
    """
    Tell whether the last collective of this thread had begun. If so, its arguments are not what raised since.
    """

def elements_digest(tensors: object, key: int) -> int:
    """
    64 bits that stand for the elements of tensors, one after the other, in row-major order.
    """

def has_repeated(objects: list[object]) -> bool:
    """
    Whether any object is in the list more than once.
    """

def share_allocations(at_least: int) -> int:
    """
    Send this thread's hooked allocations of so many bytes and more to shared memory, none with 0; tell what held before.
    """

def hook_aligned_allocations(library: str) -> bool:
    """
    Hook what the loaded library of this file name allocates aligned; False when it does not.
    """

def set_array_allocator(array_api: object, handler: object | None) -> object:
    """
    Make numpy allocate arrays by a handler, a hooked one with None; return the one that did before.
    """

def is_shared(address: int, bytes: int) -> bool:
    """
    Whether other ranks could read these bytes where they are.
    """

def arena_usage() -> tuple[int, int, int]:
    """
    How many bytes hooked allocations have in shared memory, how many are reserved for them, and in how many files.
    """

def dtype_bytes(name: str) -> int:
    """
    The bytes of an element of the dtype called so, 0 when there is none.
    """

def set_cross_memory_from(bytes: int) -> None:
    """
    Have what two ranks have for each other, at least so many bytes each, read between processes in groups whose rank 0 this process becomes; as the machine is, with 0.
    """

def set_stall_warning(seconds: float) -> None:
    """
    Warn after so many seconds of one wait that others are missing, never with 0.
    """

def ask_process(address: str, timeout: float) -> tuple[bytes, bytes | None]:
    """
    Ask the process at an address for the facts of its groups, as JSON, and where its program is, if it says so.
    """

def are_of_two_jobs(one: tuple[str, str, bool, bool, str], other: tuple[str, str, bool, bool, str]) -> bool:
    """
    Tell whether processes of two origins are to be taken for ranks of two jobs.
    """

def set_before_exec(function: Callable[[], object]) -> None:
    """
    Set the function that is called before os.execv and its like put another program into this process.
    """

def circle_from(start: int, awaited: Sequence[Sequence[int]]) -> list[int]:
    """
    Return a short circle that can be reached from a number along those which each of them awaits, or nothing.
    """

def told_circle(waits: Sequence[tuple[int, str, int]]) -> str:
    """
    Tell of ranks, of where they wait and of what that holds up, that they wait for each other.
    """

def set_makes_no_calls(makes_none: bool) -> None:
    """
    Say of this thread that it makes no calls in groups; take it back before it ends.
    """

def threads_in_functions() -> int:
    """
    How many threads are in functions of Python that the engine has them call.
    """

def process_state(pid: int) -> str:
    """
    Tell whether a process is running, sleeping or stopped, or nothing.
    """

class SharedMemory:
    """
    Zeroed memory that the ranks of any group can read where it is; freed with this object.
    """

    def __init__(self, bytes: int) -> None: ...
    def address(self) -> int: ...

CollectiveName = Literal[
    "broadcast",
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "reduce_scatter",
    "all_to_all",
    "barrier",
]

def check_call(
    collective: CollectiveName,
    rank: int,
    size: int,
    *,
    outputs: object | None = None,
    inputs: object | None = None,
    output_splits: object | None = None,
    input_splits: object | None = None,
    op: object = 0,
    factor: float = 1.0,
    root: int = -1,
    whole: bool = False,
    before: str = "",
    devices: bool = False,
) -> Request:
    """
    Check one rank's call of a collective.
    """

class View:
    """A tensor of a request; strides are in elements."""

    role: str
    address: int
    dtype: str
    shape: list[int]
    strides: list[int]
    device: str

class Request:
    """A checked call; see shim.core.engines.base.Engine.arrive."""

    collective: str
    rank: int
    size: int
    root: int
    op: int
    factor: float
    dtype: str
    views: list[View]
    inputs: list[memoryview]
    outputs: list[memoryview]
    device: str
    device_number: int
    input_places: list[tuple[int, int]]
    output_places: list[tuple[int, int]]
    def current_stream(self) -> int:
        """
        The stream on which the framework of the call's tensors works now, in this thread; 0 where it does not say.
        """

    def load(self) -> None:
        """Have the inputs be bytes, before they are moved without a group."""

    def store(self) -> None:
        """Have the outputs' tensors get the bytes that were moved."""

    def combine(self, output: object, of_ranks: list[memoryview], factors: Sequence[float]) -> None:
        """
        Combine the bytes of all ranks, in their order, into those of output.
        """

class CallRecords:
    """The file of a recording; see shim.core.tracing.layout."""

    def __init__(self, file: int) -> None: ...
    def append(self, record: bytes) -> bool: ...
    def begin(self, definition: int, state: int, inputs: int) -> int: ...
    def begin_again(self, call: int, state: int) -> None: ...
    def wait(self, call: int, state: int) -> None: ...
    def end(self, call: int, state: int, error: int = 0) -> None: ...
    def note_outputs(self, call: int, digest: int) -> None: ...
    def note_source(self, call: int, rank: int) -> None: ...
    def close(self) -> None: ...
    def leave(self) -> None: ...

class Work:
    """A prepared call; see shim.core.work.EngineWork."""

    def start(self) -> None: ...
    def wait(self, timeout: float = -1.0) -> None: ...
    def hold_memory(self) -> None: ...
    def read_before_others_write(self, others: list[Work]) -> None: ...
    def is_completed(self) -> bool: ...
    def exception(self) -> ShimError | None: ...
    def source_rank(self) -> int: ...

class Group:
    """One rank's membership of a group; see shim.core.engines.base.Engine."""

    def __init__(
        self,
        key: str,
        name: str,
        ranks: Sequence[int],
        rank: int,
        timeout: float,
        parent: Group | None = None,
        measurements: str | None = None,
        origin: tuple[str, str, bool, bool, str] = ("", "", False, False, ""),
        engine: tuple[str, str] = ("", ""),
    ) -> None: ...
    def broadcast(self, tensor: object | None, root: int, now: bool = False) -> Work | None: ...
    def all_reduce(
        self, output: object | None, input: object | None, op: object, factor: float, now: bool = False
    ) -> Work | None: ...
    def reduce(
        self, output: object | None, input: object | None, op: object, root: int, factor: float, now: bool = False
    ) -> Work | None: ...
    def all_gather(
        self,
        outputs: object | None,
        input: object | None,
        output_splits: object | None,
        now: bool = False,
        whole: bool = False,
    ) -> Work | None: ...
    def gather(
        self, outputs: object | None, input: object | None, root: int, output_splits: object | None, now: bool = False
    ) -> Work | None: ...
    def scatter(
        self, output: object | None, inputs: object | None, root: int, input_splits: object | None, now: bool = False
    ) -> Work | None: ...
    def reduce_scatter(
        self,
        output: object | None,
        inputs: object | None,
        op: object,
        factor: float,
        input_splits: object | None,
        now: bool = False,
        whole: bool = False,
    ) -> Work | None: ...
    def all_to_all(
        self,
        outputs: object | None,
        inputs: object | None,
        output_splits: object | None,
        input_splits: object | None,
        now: bool = False,
        whole: bool = False,
    ) -> Work | None: ...
    def barrier(self, now: bool = False, before: str = "") -> Work | None: ...
    def arrive(self, request: object, move: object, now: bool = False) -> Work | None: ...
    def send(self, tensor: object | None, peer: int, tag: object, now: bool = False) -> Work | None: ...
    def receive(self, tensor: object | None, peer: int | None, tag: object, now: bool = False) -> Work | int: ...
    def refuse(self, reason: str) -> None: ...
    def give_up(self, why: str) -> None: ...
    def is_gone(self, rank: int) -> bool: ...
    def has_left(self, rank: int) -> bool: ...
    def ending_of(self, rank: int) -> str: ...
    def has_ended(self, rank: int) -> bool: ...
    def is_usable(self) -> bool: ...
    def set_timeout(self, seconds: float) -> None: ...
    def thresholds(self) -> dict[str, int]: ...
    def serve_larger_group(self) -> None: ...
    def close(self, why: str = "") -> None: ...

class Wire:
    """A connection to the leader of another host, which owns the socket with descriptor *file*; see native/wires/."""

    def __init__(self, file: int) -> None: ...

class CarriedGroup(Group):
    """One rank's membership of a group across hosts; see native/group/carrier.hpp, mirror.hpp and native/crossing/."""

    def __init__(
        self,
        key: str,
        name: str,
        ranks: Sequence[int],
        rank: int,
        timeout: float,
        engine: tuple[str, str],
        carrier: object,
        hosts: Sequence[Sequence[int]],
        wires: Sequence[Wire],
        hash_seed: int,
        pids: Sequence[int],
    ) -> None: ...
    def transfer(
        self, tensor: object | None, is_send: bool, peer: int | None, tag: object, mover: object, now: bool = False
    ) -> Work | int: ...
    def note(self) -> tuple[str, str, float] | None: ...
    def take_arrival(self, rank: int, sequence: int) -> None: ...
    def take_place(self, rank: int, sequence: int, place: str) -> None: ...
    def take_note(self, rank: int, waits_for: str, waits_at: str, age: float) -> None: ...
    def take_ending(self, rank: int, state: int, cause: int, reason: str, has_left: bool) -> None: ...
    def take_process(self, rank: int, pid: int) -> None: ...
    def mark_lost(self, rank: int, how: str) -> None: ...
    def check_rank_present(self, rank: int) -> None: ...
    def give_up(self, why: str) -> None: ...
    def address(self) -> str: ...
    def sequence(self) -> int: ...
    def exchanged(self) -> int: ...
    def leave(self, why: str = "") -> None: ...
    def timeout(self) -> float: ...
