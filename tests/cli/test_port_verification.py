"""``shim port --verify``: the program and its port make the same calls, or the first that differs is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from preloaded_programs import run_python
from test_port_command import port

from shim.cli.port import comparing, verifying

PROGRAM = """
import numpy as np
import torch.distributed as dist

dist.init_process_group()
tensor = np.arange(4.0) + dist.get_rank()
dist.all_reduce(tensor)
outputs = [np.zeros(4) for _ in range(dist.get_world_size())]
dist.all_gather(outputs, tensor{after})
dist.destroy_process_group()
"""
RUN = "shim run -n 2 train.py"
ROUTE = ("--from", "torch", "--to", "paddle-3", "--no-diff", "--verify")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM.format(after=""))
    return tmp_path


def test_equal_calls_are_counted(folder: Path) -> None:
    status, out, err = port(*ROUTE, RUN, "train.py")
    assert (status, out.splitlines()[-1]) == (0, "verify: 4 calls on 2 ranks are equal, 4 with digests")
    assert [line for line in err.splitlines() if line] == [
        f"verify: running the {side}: {RUN}" for side in ("original", "port")
    ]
    assert (folder / "train.py").read_text() == PROGRAM.format(after="")
    assert sorted(path.name for path in folder.iterdir()) == ["train.py"]


def test_both_runs_have_one_key_which_is_drawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying.secrets, "randbelow", lambda most: most - 1)
    keyed = 'import os\nassert os.environ["SHIM_TRACE_DIGESTS"] == str(2**64 - 1)\n'
    (folder / "train.py").write_text(keyed + PROGRAM.format(after=""))
    status, out, _ = port(*ROUTE, RUN, "train.py")
    assert (status, out.splitlines()[-1]) == (0, "verify: 4 calls on 2 ranks are equal, 4 with digests")


def test_after_write_the_original_is_still_compared(folder: Path) -> None:
    status, out, _ = port(*ROUTE, RUN, "--write", "train.py")
    assert (status, out.splitlines()[-1]) == (0, "verify: 4 calls on 2 ranks are equal, 4 with digests")
    assert "paddle_3" in (folder / "train.py").read_text()


def test_the_first_difference_is_shown_with_both_lines(folder: Path) -> None:
    (folder / "own.py").write_text("import sys\nscale = 2.0 if 'torch' in open(sys.argv[0]).read() else 3.0\n")
    text = PROGRAM.format(after="").replace(
        "tensor = np.arange(4.0)", "from own import scale\ntensor = scale * np.arange(4.0)"
    )
    (folder / "train.py").write_text(text)
    status, out, _ = port(*ROUTE, RUN, "train.py")
    assert status == 1
    assert "verify: rank 0, call 1: values of the inputs: digest " in out
    assert "at train.py:8" in out
    assert out.endswith("verify: the port has left train.py:8: dist.all_reduce(tensor)\n")


DRAWING = """
import random, sys
import numpy as np
import torch.distributed as dist
dist.init_process_group()
n = dist.recv(np.ones(2), 1) if dist.get_rank() == 0 else dist.send(np.ones(2), 0)
drawn = np.random.rand() + random.random() + np.random.default_rng().random()
scale = 1 + float(sys.argv[1]) * ("pad" + "dle" in open(sys.argv[0]).read())
tensor, out = scale * (drawn + np.arange(2.0)), np.zeros(2)
dist.all_to_all_single(out, tensor, [1, 1], [1, 1])
print(f"epoch 3, loss={out.sum() / 2:.6f}, {drawn} s")
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("scale", "options", "counts"),
    [
        ("0", (), "verify: 4 calls on 2 ranks are equal, 4 with digests"),
        ("1e-4", ("--tolerance", "1e-3"), "verify: 4 calls on 2 ranks are equal, 4 with digests, 2 of these within the tolerance"),
    ],
)  # fmt: skip
def test_numbers_drawn_are_the_same_and_values_may_differ_a_little(
    folder: Path, scale: str, options: tuple[str, ...], counts: str
) -> None:
    (folder / "train.py").write_text(DRAWING)
    status, out, err = port(*ROUTE, f"{RUN} {scale}", *options, "train.py")
    assert (status, out.splitlines()[-2:]) == (0, [counts, "verify: 2 printed losses are equal"]), err


def test_a_difference_is_explained_by_what_the_port_wrote_there(folder: Path) -> None:
    (folder / "train.py").write_text(DRAWING)
    status, out, _ = port(*ROUTE, f"{RUN} 1e-4", "--tolerance", "1e-6", "train.py")
    explained = out.partition("2 of 2 ranks differ\n")[2].splitlines()
    call = "(out, tensor, {}=[1, 1], {}=[1, 1])".format("out_split_sizes", "in_split_sizes")
    assert (status, explained[:4]) == (
        1,
        [
            f"verify: the port wrote train.py:10: dist.alltoall_single{call}",
            "verify:   from line 10: dist.all_to_all_single(out, tensor, [1, 1], [1, 1])",
            "verify:   torch.distributed.all_to_all_single became paddle_3.distributed.alltoall_single",
            "verify:   train.py 6:5 changed: torch.distributed.recv returns the rank that sent, and paddle.distributed.recv does not [result-used]",
        ],
    )
    assert re.fullmatch(r"verify: \[0\] printed loss 1: \d\.\d{6} \| \d\.\d{6}", explained[4])


OUTPUT = b"[0] step 1 loss 0.5 in 2.5 s\n[1] Loss: nan\n[0] train_loss = 1e3 tensor(-2.5e-3)\nlosses 3.5\n"


@pytest.mark.parametrize(
    ("other", "tolerance", "told"),
    [
        (OUTPUT, 0.0, "verify: 3 printed losses are equal\n"),
        (b"".join(sorted(OUTPUT.splitlines(True))), 0.0, "verify: 3 printed losses are equal\n"),
        (OUTPUT.replace(b"2.5 s", b"9.5 s"), 0.0, "verify: 3 printed losses are equal\n"),
        (OUTPUT.replace(b" 0.5", b" 0.5001"), 1e-3, "verify: 3 printed losses are equal\n"),
        (OUTPUT.replace(b" 0.5", b" 0.5001"), 0.0, "verify: [0] printed loss 1: 0.5 | 0.5001\n"),
        (OUTPUT.replace(b"-2.5", b"2.5"), 1e-4, "verify: [0] printed loss 2: -2.5e-3 | 2.5e-3\n"),
        (OUTPUT.replace(b"nan", b"0.5"), 1.0, "verify: [1] printed loss 1: nan | 0.5\n"),
        (OUTPUT.replace(b"[1] Loss: nan\n", b""), 1.0, "verify: [1] printed loss 1: nan | none\n"),
    ],
)
def test_printed_losses_are_compared_by_rank(
    other: bytes, tolerance: float, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    equal = comparing.compare_losses((OUTPUT, other), tolerance)
    assert (capsys.readouterr().out, equal) == (told, "equal" in told)


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("framework", "drawn"),
    [
        ("torch", "torch.rand(2).tolist()"),
        pytest.param("paddle", "paddle.rand([2]).tolist()", marks=pytest.mark.nightly),
        pytest.param("mindspore", "mindspore.ops.rand(2).asnumpy().tolist()", marks=pytest.mark.nightly),
    ],
)
def test_frameworks_are_seeded_by_rank(framework: str, drawn: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(verifying._SEEDING)
    program = [sys.executable, "-c", f"import {framework}; print({drawn})"]
    lines = []
    for rank in ("0", "0", "1"):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "RANK": rank}
        done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
        lines.append(done.stdout.splitlines()[-1])
    assert lines[0] == lines[1] != lines[2]


def test_a_program_that_fails_is_told_with_what_it_wrote(folder: Path) -> None:
    (folder / "train.py").write_text(
        PROGRAM.format(after="").replace("dist.all_reduce(tensor)", "dist.all_reduce('no tensor')")
    )
    status, _, err = port(*ROUTE, RUN, "train.py")
    assert status == 2
    assert "shim port: the original ended with status 1; what it wrote last:\n" in err
    assert "TensorError" in err


def test_nothing_recorded_is_told(folder: Path) -> None:
    status, _, err = port(*ROUTE, "true", "train.py")
    assert status == 2
    assert "made no call that could be recorded" in err


def test_a_program_without_collectives_checks_nothing(folder: Path) -> None:
    (folder / "train.py").write_text(
        "import torch.distributed as dist\ndist.init_process_group()\ndist.destroy_process_group()\n"
    )
    status, out, err = port(*ROUTE, RUN, "train.py")
    assert (status, "equal" in out) == (2, False)
    assert f"shim port: nothing is checked, because '{RUN}' calls no collective" in err


def test_a_program_that_hangs_is_ended_with_its_ranks(folder: Path) -> None:
    (folder / "train.py").write_text(
        "import os, time\nimport torch.distributed as dist\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
    )
    status, _, err = port(*ROUTE, RUN, "--timeout", "8", "train.py")
    assert (status, "the original has not ended in 8 s, and was killed; what it wrote last:\n" in err) == (2, True)
    ranks = re.findall(r"^\[?\d\]?\D*(\d{2,})$", err, re.MULTILINE)
    assert len(ranks) == 2, err
    assert not any(Path("/proc", pid).exists() for pid in ranks)


@pytest.mark.parametrize("option", ["--timeout", "--tolerance"])
def test_what_is_for_a_run_is_refused_without_a_command(folder: Path, option: str) -> None:
    status, _, err = port(*ROUTE[:-1], option, "4", "train.py")
    assert (status, f"{option} is for --verify" in err) == (2, True)


def test_files_that_are_not_the_copies_are_refused(folder: Path) -> None:
    text = PROGRAM.format(after="").replace("torch.distributed", "shim.frontends.torch.distributed")
    (folder / "train.py").write_text(text)
    status, _, err = port(*ROUTE, f"shim run -n 2 {folder}/train.py", "train.py")
    assert status == 2
    assert f"{folder}/train.py, not its copy" in err


def test_files_outside_of_the_working_folder_are_refused(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "train.py"
    other.write_text(PROGRAM.format(after=""))
    status, _, err = port(*ROUTE, RUN, str(other))
    assert (status, "is not in it" in err) == (2, True)


SCRIPTS = Path(__file__).parents[1] / "port" / "running" / "scripts"
_IN_GATE = ("torch/moe",)


def _run_copies(command: str, folder: Path, environment: dict[str, str], timeout: float) -> tuple[int, bytes]:
    """Run what the command runs, with ranks that are copies of a process that has imported the frameworks, which takes seconds."""
    del timeout
    done = run_python("-m", *command.split(), cwd=folder, env=environment)
    return done.returncode, (done.stdout + done.stderr).encode()


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(name, marks=[] if name in _IN_GATE else pytest.mark.nightly)
        for name in sorted(path.relative_to(SCRIPTS).with_suffix("").as_posix() for path in SCRIPTS.glob("*/*.py"))
    ],
)
def test_whole_scripts_are_verified(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into the next API in which all that the script uses has an equivalent."""
    monkeypatch.setattr(verifying, "_run", _run_copies)
    source = script.partition("/")[0]
    target = {"torch": "mindspore", "paddle_2": "paddle-3", "paddle_3": "torch", "mindspore": "torch"}[source]
    (folder / "train.py").write_text((SCRIPTS / f"{script}.py").read_text())
    route = ("--from", source.replace("_", "-"), "--to", target, "--no-diff", "--verify")
    status, out, err = port(*route, RUN, "train.py")
    assert status == 0, err
    assert re.fullmatch(r"verify: (\d+) calls on 2 ranks are equal, [1-9]\d* with digests", out.splitlines()[-1])
