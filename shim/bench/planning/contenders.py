"""Who is measured: our frontends and the engine below them, other libraries, each as it is and at its best, and the machine's floor."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from shim.bench.planning.floors import ONE_COPY, TWO_COPIES


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
    Contender("torch", "our torch frontend, torch's tensors", f"{_LIBRARIES}.torch_api:TorchFrontend", ("torch",)),
    Contender(
        "torch-shared", "our torch frontend, torch's tensors in shared memory", f"{_LIBRARIES}.torch_api:TorchFrontendShared",
        ("torch",),
    ),
    Contender("torch-numpy", "our torch frontend, numpy's arrays", f"{_LIBRARIES}.torch_api:TorchFrontendWithNumpy"),
    Contender("paddle_3", "our paddle_3 frontend, paddle's tensors", f"{_LIBRARIES}.paddle_api:PaddleFrontend", ("paddle",)),
    Contender(
        "mindspore", "our mint frontend, mindspore's tensors", f"{_LIBRARIES}.mindspore_api:MindSporeFrontend", ("mindspore",)
    ),
)  # fmt: skip
PEERS = (
    Contender("gloo", "torch.distributed on gloo", f"{_LIBRARIES}.torch_api:Gloo", ("torch",)),
    Contender(
        "gloo-tuned", "the same on the loopback interface with one thread, bound to processors", f"{_LIBRARIES}.torch_api:GlooTuned",
        ("torch",),
    ),
    Contender("paddle-gloo", "paddle.distributed on gloo", f"{_LIBRARIES}.paddle_api:PaddleGloo", ("paddle",)),
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
