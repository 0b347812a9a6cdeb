"""``shim conformance run --engine --hosts``: the examples run on the engine that was asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = """
# ranks: 4
import torch
import torch.distributed as dist
import shim

dist.init_process_group()
total = torch.full((1000,), float(dist.get_rank()))
dist.all_reduce(total)
print(total[:2])
# shows: tensor([6., 6.])
assert "engine ENGINE" in shim.explain(), shim.explain()
"""


def run(tmp_path: Path, engine: str, *options: str) -> subprocess.CompletedProcess[str]:
    example = tmp_path / "example.py"
    example.write_text(EXAMPLE.replace("ENGINE", engine))
    command = [sys.executable, "-m", "shim", "conformance", "run", str(example), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.frameworks
def test_examples_run_on_several_hosts_by_the_engine_for_them(tmp_path: Path) -> None:
    done = run(tmp_path, "hierarchical over gloo", "--engine", "hierarchical", "--hosts", "2")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.frameworks
def test_an_example_that_claims_another_engine_fails(tmp_path: Path) -> None:
    assert run(tmp_path, "hierarchical").returncode == 1


def test_an_engine_that_is_none_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "any", "--engine", "fast")
    assert done.returncode == 2
    assert "--engine must be one of shared_memory" in " ".join(done.stderr.replace("│", " ").split())
