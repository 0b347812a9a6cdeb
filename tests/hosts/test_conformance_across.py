"""The frameworks' documented examples, and the documents' cases, with ranks on two hosts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from starting import environment

pytest.importorskip("torch", reason="gloo is torch's")

PROGRAM = str(Path(__file__).with_name("conformance_across.py"))
OF_ONE_HOST = {"torch.distributed.TCPStore"}  # it meets at 127.0.0.1, which is another place on each host
# They start processes of their own, of which mpirun knows nothing.
_WITHOUT_MPIRUN = (
    "ParallelEnv",
    "gloo_barrier",
    "gloo_init_parallel_env",
    "gloo_release",
    "init_parallel_env",
    "spawn",
)
OF_OTHER_LAUNCHERS = {f"paddle.distributed.{name}" for name in _WITHOUT_MPIRUN}


@pytest.mark.nightly
@pytest.mark.parametrize("library", ["gloo", "mpi"])
@pytest.mark.parametrize("framework", ["torch", "paddle", "mindspore"])
def test_documented_examples(library: str, framework: str) -> None:
    command = [sys.executable, PROGRAM, library, "conformance", "run", "--framework", framework]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=3000, check=False, start_new_session=True
    )
    failed = set(re.findall(r"^failed: (\S+)", done.stdout, re.MULTILINE))
    assert failed <= (OF_ONE_HOST | OF_OTHER_LAUNCHERS if library == "mpi" else OF_ONE_HOST), done.stdout + done.stderr
    assert int(re.findall(r"(\d+) pass", done.stdout)[-1]) > 40, done.stdout + done.stderr
