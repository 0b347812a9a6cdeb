"""Who is measured, with which cases, and for how long.

The contenders are our frontends and the engine below them, other libraries, each as it is and at its best, and the machine's floor.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shim.bench.cases import COMPUTING, NO_DTYPE, WITHOUT_SIZE, Case, machine_cases
from shim.bench.floors import ONE_COPY, TWO_COPIES


@dataclass(frozen=True)
class Contender:
    """A library, one way to call it, and the settings with which its ranks are started.

    ``library`` is the class that its ranks open, ``needs`` the modules that have to be installed, ``mpi`` the launcher it needs:
    "openmpi" or "mpich", which ``launchers`` gives its best settings when ``tuned``.
    """

    name: str
    title: str
    library: str
    needs: tuple[str, ...] = ()
    mpi: str = ""
    tuned: bool = False

    @property
    def missing(self) -> str | None:
        """Return what is not installed, or None. Launchers are looked for when the ranks are to be started."""
        absent = [name for name in self.needs if importlib.util.find_spec(name) is None]
        return f"{', '.join(absent)} is not installed" if absent else None


_LIBRARIES = "shim.bench.libraries"

OURS = (
    Contender("engine", "our engine without a frontend", f"{_LIBRARIES}.engine:Engine"),
    Contender("torch", "our torch frontend, torch's tensors", f"{_LIBRARIES}.dist_apis:TorchFrontend", ("torch",)),
    Contender(
        "torch-shared", "our torch frontend, torch's tensors in shared memory", f"{_LIBRARIES}.dist_apis:TorchFrontendShared",
        ("torch",),
    ),
    Contender("torch-numpy", "our torch frontend, numpy's arrays", f"{_LIBRARIES}.dist_apis:TorchFrontendWithNumpy"),
    Contender("paddle_3", "our paddle_3 frontend, paddle's tensors", f"{_LIBRARIES}.dist_apis:PaddleFrontend", ("paddle",)),
    Contender(
        "mindspore", "our mint frontend, mindspore's tensors", f"{_LIBRARIES}.dist_apis:MindSporeFrontend", ("mindspore",)
    ),
)  # fmt: skip
PEERS = (
    Contender("gloo", "torch.distributed on gloo", f"{_LIBRARIES}.dist_apis:Gloo", ("torch",)),
    Contender(
        "gloo-tuned", "the same on the loopback interface with one thread, bound to processors", f"{_LIBRARIES}.dist_apis:GlooTuned",
        ("torch",),
    ),
    Contender("paddle-gloo", "paddle.distributed on gloo", f"{_LIBRARIES}.dist_apis:PaddleGloo", ("paddle",)),
    Contender("openmpi", "Open MPI as it is", f"{_LIBRARIES}.mpi:Mpi", ("mpi4py",), "openmpi"),
    Contender(
        "openmpi-tuned", "Open MPI with its shared-memory collectives, bound to cores or yielding", f"{_LIBRARIES}.mpi:Mpi",
        ("mpi4py",), "openmpi", tuned=True,
    ),
    Contender("mpich", "MPICH as it is", f"{_LIBRARIES}.mpi:Mpi", ("mpi4py",), "mpich"),
    Contender(
        "mpich-tuned", "MPICH with its shared-memory collectives from the first call on, bound to cores", f"{_LIBRARIES}.mpi:Mpi",
        ("mpi4py",), "mpich", tuned=True,
    ),
)  # fmt: skip
FLOORS = (
    Contender(ONE_COPY, "the machine's floor, one copy", f"{_LIBRARIES}.floor:OneCopy"),
    Contender(TWO_COPIES, "the machine's floor, two copies", f"{_LIBRARIES}.floor:TwoCopies"),
)
CONTENDERS = {contender.name: contender for contender in (*OURS, *PEERS, *FLOORS)}
QUICK = ("engine", "torch", "gloo", "openmpi", ONE_COPY, TWO_COPIES)


OVERLAP_SAMPLES = 3  # in one turn

_TURN, _CROWDED_TURN = 0.02, 0.03  # seconds of a turn beside its timed calls, and what more ranks than processors add
_BYTES_A_SECOND = 0.8e9  # of all ranks' tensors in a turn, which are made, written and worked on several times
_OVERLAP_TURN = 0.6  # seconds
_SLOWEST = 40e6  # bytes a second that any library moves at least
_PATIENCE = 30.0  # seconds for a turn of anything


@dataclass(frozen=True)
class Plan:
    """All of one run. ``seconds`` are those of timed calls that a contender gets for a case, in all its ``rounds`` together.

    Collectives that compute are measured with the ``computed`` dtypes too, on the smallest number of ranks.
    """

    collectives: Sequence[str]
    ranks: Sequence[int]
    dtypes: Sequence[str]
    sizes: Sequence[int]
    contenders: Sequence[Contender]
    rounds: int
    seconds: float
    processors: int
    memory: Callable[[int], int]  # bytes that so many ranks may take, once all ranks have been started
    overlap: Case | None = None
    computed: Sequence[str] = ()

    def cases(self, ranks: int) -> Iterator[Case]:
        """Yield the cases of *ranks* ranks, a collective's sizes one after the other."""
        for collective in self.collectives:
            if collective in WITHOUT_SIZE:
                yield Case(collective, ranks, NO_DTYPE, 0)
                continue
            computed = self.computed if collective in COMPUTING and ranks == min(self.ranks) else ()
            for dtype in (*self.dtypes, *computed):
                for size in self.sizes:
                    yield Case(collective, ranks, dtype, size)

    def turns(self, ranks: int) -> Iterator[tuple[Case, Sequence[Contender]]]:
        """Yield what is measured in a round of *ranks* ranks, each with those who take part: of the machine itself, a floor alone."""
        floors = [contender for contender in self.contenders if contender in FLOORS]
        for case in machine_cases(ranks) if floors else []:
            yield case, floors[:1]
        for case in self.cases(ranks):
            yield case, self.contenders

    @property
    def budget(self) -> float:
        """Seconds of timed calls in one turn."""
        return self.seconds / self.rounds

    @property
    def weight(self) -> float:
        """The sum of the weights of all turns of all rounds, and of starting everyone."""
        turns = sum(self.turn_weight(case) * len(who) for ranks in self.ranks for case, who in self.turns(ranks))
        others = [contender for contender in self.contenders if contender not in FLOORS]
        starts = sum(start_weight(ranks) for ranks in self.ranks) * len(self.contenders)
        return starts + (turns + overlap_weight(self.overlap) * len(others)) * (self.rounds + 1)

    def turn_weight(self, case: Case) -> float:
        """Return about how long a turn takes, in seconds, of whichever contender: with few processors some others need long."""
        crowded = _CROWDED_TURN if case.ranks > self.processors else 0.0
        return self.budget + _TURN + crowded + case.memory / _BYTES_A_SECOND


def start_weight(ranks: int) -> float:
    """Return about how long it takes to start *ranks* ranks, in seconds."""
    return 0.5 * ranks


def overlap_weight(case: Case | None) -> float:
    """Return about how long a turn takes in which *case* runs alone and behind a product, in seconds."""
    return 0.0 if case is None else _OVERLAP_TURN


def deadline_of(case: Case) -> float:
    """Return after how many seconds a turn's ranks are taken to hang."""
    return _PATIENCE + case.memory * case.ranks / _SLOWEST
