"""``shim port --verify``: run the program and its port, and compare what their ranks called.

Each runs in a copy of the working folder. The original runs on the frontend of its own API, so that the engine records it too.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from shim.cli.port.comparing import compare_calls, compare_losses

if TYPE_CHECKING:
    from shim.port.plan import FileResult, Plan, Result
    from shim.trace.calls import Recording

_LEFT_OUT = shutil.ignore_patterns(".git", ".hg", ".venv", "venv", "__pycache__", "node_modules")
_LARGE = 50_000_000  # bytes of a file that is linked, not copied
_SECONDS_TO_END = 10
_TOLD = 30  # lines of the output of a program that fails
# Python runs it first. A program that seeds what it draws does so later, and is not concerned.
_SEEDING = """\
import os, random
from shim.frontends._after_import import after_import
seed = 1 + int(os.environ.get("RANK") or 0)
def seed_numpy(numpy):
    new = numpy.random.default_rng
    numpy.random.seed(seed)
    numpy.random.default_rng = lambda given=None: new(seed if given is None else given)
random.seed(seed)
after_import("numpy", seed_numpy)
after_import("torch", lambda torch: torch.manual_seed(seed))
after_import("paddle", lambda paddle: paddle.seed(seed))
after_import("mindspore", lambda mindspore: mindspore.set_seed(seed))
"""


class _Refused(Exception):
    """Why the two cannot be compared."""


def verify(command: str, result: Result, timeout: float, tolerance: float) -> int:
    """Run *command* on the files of *result* as they were and as they are ported, and print whether their calls and losses are equal.

    Each run may take *timeout* seconds. Floating-point values and losses may differ by *tolerance*, and by this share of their size.

    Returns the exit status: 0 if all are, 1 if not, 2 if they cannot be compared.
    """
    folder, digest_key = Path.cwd(), 1 + secrets.randbelow((1 << 64) - 1)
    outside = [file.path for file in result.changed if not file.target.resolve().is_relative_to(folder.resolve())]
    if outside:
        typer.echo(f"shim port: --verify copies the working folder, and {outside[0]} is not in it", err=True)
        return 2
    with tempfile.TemporaryDirectory(prefix="shim-port-") as made:
        trees = {name: Path(made, name, folder.name) for name in ("original", "port")}
        Path(made, "sitecustomize.py").write_text(_SEEDING)
        values = str(digest_key), tolerance > 0
        try:
            runs = [_recording_of(name, tree, command, result, timeout, values) for name, tree in trees.items()]
        except _Refused as refusal:
            typer.echo(f"shim port: {refusal}", err=True)
            return 2
        recordings, outputs = zip(*runs, strict=True)
        equal = compare_calls(recordings, list(trees.values()), result, tolerance)
        if equal is None:
            typer.echo(f"shim port: nothing is checked, because {command!r} calls no collective", err=True)
            return 2
        return 0 if compare_losses(outputs, tolerance) and equal else 1


def _recording_of(
    name: str, tree: Path, command: str, result: Result, timeout: float, values: tuple[str, bool]
) -> tuple[Recording, bytes]:
    """Run *command* in a copy of the working folder at *tree*, and return what its ranks called, and its output.

    *values* are the key of digests, and whether values are kept.
    """
    from shim.errors import ShimError
    from shim.trace.reading import read_recording

    shutil.copytree(Path.cwd(), tree, symlinks=True, ignore=_LEFT_OUT, copy_function=_copy)
    for file in result.changed:
        place = tree / file.target.resolve().relative_to(Path.cwd().resolve())
        content = file.after if name == "port" else _on_its_own_frontend(place, file, result.plan)
        place.write_bytes(content)
    typer.echo(f"verify: running the {name}: {command}", err=True)
    folder = tree.parent / "trace"
    status, output = _run(command, tree, _environment(tree, folder, *values), timeout)
    if status != 0:
        told = "\n".join(output.decode(errors="replace").splitlines()[-_TOLD:])
        end = f"ended with status {status}" if status is not None else f"has not ended in {timeout:g} s, and was killed"
        raise _Refused(f"the {name} {end}; what it wrote last:\n{told}")
    try:
        recording = read_recording(folder)
    except ShimError:
        raise _Refused(
            f"the {name} made no call that could be recorded: does {command!r} run the ported files, and does it start ranks?"
        ) from None
    _check_places(recording, command)
    return recording, output


def _run(command: str, folder: Path, environment: dict[str, str], timeout: float) -> tuple[int | None, bytes]:
    """Run *command* in *folder*, and return its status, None if it had to be killed after *timeout* seconds, and what it wrote."""
    with tempfile.TemporaryFile() as output:  # no pipe, which what it leaves behind could hold open
        started = subprocess.Popen(
            command, shell=True, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        status = None
        before = signal.signal(signal.SIGTERM, _leave)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = started.wait(timeout)
        finally:  # also after Ctrl-C, of which a session of its own does not hear
            if status is None:
                _end(started)
            signal.signal(signal.SIGTERM, before)
        output.seek(0)
        return status, output.read()


def _leave(number: int, frame: object) -> NoReturn:
    """End as a signal asks, with what has been started and the copies of the folder."""
    sys.exit(128 + number)


def _end(started: subprocess.Popen[bytes]) -> None:
    """End the session of *started*; a launcher has some seconds to end its ranks, which may have sessions of their own."""
    with contextlib.suppress(ProcessLookupError):  # none is left
        os.killpg(started.pid, signal.SIGTERM)
        deadline = time.monotonic() + _SECONDS_TO_END
        while time.monotonic() < deadline:
            started.poll()  # the shell, which ends before the launcher
            os.killpg(started.pid, 0)
            time.sleep(0.05)
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def _on_its_own_frontend(place: Path, file: FileResult, plan: Plan) -> bytes:
    """Return the original of *file*, whose copy is at *place*, as it runs on shim's frontend of its own API."""
    from shim.port.run import port_paths

    place.write_bytes(file.before)
    own = port_paths([place], replace(plan, target=plan.source, onto="shim"), jobs=1)
    return own.files[0].after if own.changed else file.before


def _check_places(recording: Recording, command: str) -> None:
    """Refuse a recording of files that are not the copies, but those of the working folder."""
    for call in recording.calls:
        if call.shape.source.startswith(f"{Path.cwd()}{os.sep}"):
            raise _Refused(
                f"{command!r} runs {call.shape.source.partition(':')[0]}, not its copy: by an absolute path, or because the project is installed\n"
                "Start it by paths relative to the working folder, with the project's folder on PYTHONPATH."
            )


def _copy(source: str, target: str) -> None:
    if os.path.getsize(source) > _LARGE:
        os.symlink(source, target)
    else:
        shutil.copy2(source, target)


def _environment(tree: Path, folder: Path, digest_key: str, keep: bool) -> dict[str, str]:
    """Return the environment of a run in *tree*, which is recorded to *folder*, with the same folders on the path, and what seeds it."""
    here = str(Path.cwd())
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    moved = [str(tree) + entry.removeprefix(here) if f"{entry}/".startswith(f"{here}/") else entry for entry in path]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tree.parent.parent), *moved]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SHIM_TRACE": str(folder),
        "SHIM_TRACE_DIGESTS": digest_key,
        "SHIM_TRACE_VALUES": str(tree.parent / "values") if keep else "",
    }
