"""``shim port`` as a command. These files have launch lines alone, which need no parser."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from shim.cli import _app

ROOT = Path(__file__).parents[2]
LAUNCH = "torchrun --nproc_per_node 2 train.py\n"
PORTED = "shim run -n 2 train.py\n"
LEFT = "torchrun --nnodes 2 train.py\n"
ROUTE = ("--from", "torch", "--to", "mindspore")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def port(*arguments: str) -> tuple[int, str, str]:
    """Return the exit status and what the command prints, called in this process."""
    done = CliRunner().invoke(_app, ["port", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_by_default_the_changes_and_the_report_are_printed_and_nothing_is_written(folder: Path) -> None:
    (folder / "a.sh").write_text(LAUNCH)
    (folder / "b.md").write_text(LEFT)
    status, out, err = port(*ROUTE, ".")
    assert status == 1
    assert f"--- a/a.sh\n+++ b/a.sh\n@@ -1 +1 @@\n-{LAUNCH}+{PORTED}" in out
    assert "b.md\n  1:1  left: " in out
    assert "1 file would change, 1 place ported, 1 place left to you" in out
    assert err == ""
    assert ((folder / "a.sh").read_text(), (folder / "b.md").read_text()) == (LAUNCH, LEFT)


def test_write_writes(folder: Path) -> None:
    (folder / "a.sh").write_text(LAUNCH)
    status, out, _ = port(*ROUTE, "--write", "a.sh")
    assert (status, out) == (
        0,
        "1 file changed, 1 place ported, 0 places left to you, 0 places to look at; 1 file searched.\n",
    )
    assert (folder / "a.sh").read_text() == PORTED


def test_scope_and_onto(folder: Path) -> None:
    source = "import torch\nimport torch.distributed as dist\nx = torch.zeros(2)\ndist.gather_object(x, None, dst=1)\n"
    (folder / "a.py").write_text(source)
    assert (
        port("--from", "torch", "--to", "paddle-3", "--scope", "statements", "--onto", "native", "--write", ".")[0] == 0
    )
    assert (folder / "a.py").read_text() == (
        "import paddle\nimport paddle.distributed as dist\nfrom shim_port_glue import gather_object\n"
        "x = paddle.zeros([2])\ngather_object(x, None, dst=1)\n"
    )
    assert "def gather_object" in (folder / "shim_port_glue.py").read_text()


def test_the_framework_itself_gets_its_own_tensors(folder: Path) -> None:
    (folder / "a.py").write_text(
        "import torch\nimport torch.distributed as dist\nx = torch.zeros(2)\ndist.all_reduce(x)\n"
    )
    status, out, _ = port(*ROUTE, "--onto", "native", "a.py")
    assert (status, "+x = mindspore.ops.zeros([2])" in out) == (0, True)
    assert "Tensors: mindspore's in the code that calls collectives" in out
    status, out, _ = port(*ROUTE, "--onto", "native", "--scope", "collectives", "a.py")
    assert (status, "1 place left to you" in out, "[source-tensors]" in out) == (1, True, True)
    status, out, _ = port(*ROUTE, "a.py")
    assert (status, "to run on Ascend, port with --onto native" in out) == (0, True)
    (folder / "b.py").write_text(
        "import paddle\nimport paddle.distributed as dist\nx = paddle.zeros([2])\ndist.alltoall(x, y)\n"
    )
    status, out, _ = port("--from", "paddle-2", "--to", "paddle-3", "--onto", "native", "b.py")
    assert (status, "Tensors:" in out, "-import" in out) == (0, False, False)


def test_the_page_shows_what_is_printed(folder: Path) -> None:
    (folder / "run.sh").write_text(LAUNCH + LEFT)
    _, out, _ = port(*ROUTE, "run.sh")
    assert f"```\n{out}```\n" in (ROOT / "docs" / "porting.md").read_text()


@pytest.mark.parametrize(("content", "status"), [(LAUNCH, 1), (LEFT, 1), (PORTED, 0)])
def test_check_tells_by_its_status_if_there_is_something_to_port(folder: Path, content: str, status: int) -> None:
    (folder / "a.sh").write_text(content)
    found, out, _ = port(*ROUTE, "--check", "a.sh")
    assert (found, out.count("\n")) == (status, 1)
    assert (folder / "a.sh").read_text() == content


@pytest.mark.parametrize(("content", "status"), [(LAUNCH, 0), (LEFT, 1), (PORTED, 0)])
def test_without_check_only_places_that_are_left_fail(folder: Path, content: str, status: int) -> None:
    (folder / "a.sh").write_text(content)
    assert port(*ROUTE, "a.sh")[0] == status


def test_a_file_that_cannot_be_ported_is_status_2(folder: Path) -> None:
    (folder / "a.py").write_text(f"# {LAUNCH}print 'a'\n")
    for option in ("--no-diff", "--check", "--write"):
        status, out, _ = port(*ROUTE, option, ".")
        assert status == 2
        assert "a.py\n  not ported: it is not Python 3, line 2: " in out


@pytest.mark.parametrize(("option", "shown"), [("--diff", True), ("--no-diff", False)])
def test_the_diff_is_shown_or_not(folder: Path, option: str, shown: bool) -> None:
    (folder / "a.sh").write_text(LAUNCH)
    for mode in ([], ["--check"]):
        assert ("+shim run" in port(*ROUTE, option, *mode, "a.sh")[1]) is shown


@pytest.mark.parametrize("form", ["markdown", "json", "sarif"])
def test_a_report_in_another_form_is_printed_alone_or_written_to_a_file(folder: Path, form: str) -> None:
    (folder / "a.sh").write_text(LAUNCH + LEFT)
    _, printed, _ = port(*ROUTE, "--format", form, "a.sh")
    file = folder / f"report.{'md' if form == 'markdown' else form}"
    _, out, _ = port(*ROUTE, "--report", str(file), "a.sh")
    assert file.read_text() == printed
    assert "launch-nodes" in printed
    assert "+shim run" in out
    if form != "markdown":
        json.loads(printed)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--from", "paddle", "--to", "torch", "."], ["choose the version", "paddle-3", "paddle-2"]),
        (["--from", "torch", "--to", "mindspor", "."], ["no API 'mindspor'", "is it mindspore?"]),
        (["--from", "jax", "--to", "torch", "."], ["no API 'jax'", "it is one of torch, paddle-2"]),
        (["--from", "paddle-3", "--to", "paddle_3", "."], ["are both paddle-3"]),
        ([*ROUTE, "nothing.py"], ["there is no file or folder 'nothing.py'"]),
        ([*ROUTE, "--write", "--check", "."], ["not both"]),
        ([*ROUTE, "--diff", "--format", "json", "."], ["not both"]),
        ([*ROUTE, "--report", "x.html", "."], ["must end in .md, .json, .sarif"]),
        ([*ROUTE, "--report", "no/folder/x.md", "."], ["there is no folder"]),
        ([*ROUTE, "--jobs", "0", "."], ["--jobs"]),
        ([*ROUTE, "--stats", "--format", "json", "."], ["not both"]),
        ([*ROUTE, "--select", "launch-nods", "."], ["no rule 'launch-nods'", "is it launch-nodes?"]),
        ([*ROUTE, "--ignore", "launch-nodes,x*", "."], ["no rule 'x*'", "the rule of each entry in brackets"]),
        ([*ROUTE, "--baseline", "none.json", "."], ["none.json cannot be read"]),
        ([*ROUTE, "--baseline", "a.sh", "."], ["not a JSON report of shim port"]),
        ([*ROUTE, "--onto", "all", "."], ["--onto"]),
        ([*ROUTE, "--scope", "all", "."], ["--scope"]),
        (["--to", "torch", "."], ["--from"]),
        ([*ROUTE], ["PATH"]),
    ],
)
def test_a_wrong_call_is_told_and_writes_nothing(folder: Path, arguments: list[str], told: list[str]) -> None:
    (folder / "a.sh").write_text(LAUNCH)
    status, out, err = port(*arguments)
    assert (status, out) == (2, "")
    words = " ".join(err.replace("│", " ").split())
    assert all(each in words for each in told), words
    assert os.listdir(folder) == ["a.sh"]


@pytest.mark.parametrize("name", ["paddle-2", "paddle_2", "Paddle_2"])
def test_the_names_of_paddles_have_any_spelling(folder: Path, name: str) -> None:
    (folder / "a.sh").write_text("fleetrun --nproc_per_node 2 a.py\n")
    assert port("--from", name, "--to", "torch", "--write", ".")[0] == 0
    assert (folder / "a.sh").read_text() == "shim run -n 2 a.py\n"


def test_without_libcst_the_command_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libcst", None)
    status, out, err = port(*ROUTE, ".")
    assert (status, out) == (2, "")
    assert "python3 -m pip install 'shim-collectives[port]'" in err


PROGRAM = """
import numpy as np
import torch.distributed as dist

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
mine = np.arange(4, dtype=np.float32) + rank
dist.all_reduce(mine, op=dist.ReduceOp.MAX)
out = np.empty(4, dtype=np.float32)
dist.all_to_all_single(out, np.arange(4, dtype=np.float32) + 10 * rank)
print(rank, size, mine.tolist(), out.tolist())
dist.destroy_process_group()
"""


@pytest.mark.parametrize("target", ["paddle-2", "paddle-3", "mindspore"])
def test_a_ported_program_prints_what_it_printed(folder: Path, target: str) -> None:
    (folder / "train.py").write_text(PROGRAM.replace("import torch.", "import shim.frontends.torch."))
    run = [sys.executable, "-m", "shim", "run", "-n", "2", "train.py"]
    before = subprocess.run(run, capture_output=True, text=True, check=True, timeout=300)
    (folder / "train.py").write_text(PROGRAM)
    assert port("--from", "torch", "--to", target, "--write", "train.py")[0] == 0
    assert "torch" not in (folder / "train.py").read_text()
    after = subprocess.run(run, capture_output=True, text=True, check=True, timeout=300)
    assert sorted(after.stdout.splitlines()) == sorted(before.stdout.splitlines())
    assert len(after.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ([], 2),
        (["--select", "launch-nodes"], 1),
        (["--select", "launch-*"], 2),
        (["--select", "launch-*", "--ignore", "launch-nodes"], 1),
        (["--ignore", "launch-nodes,launch-ranks"], 0),
        (["--ignore", "launch-nodes", "--ignore", "launch-ranks"], 0),
    ],
)
def test_rules_are_selected_and_ignored(folder: Path, options: list[str], left: int) -> None:
    (folder / "a.sh").write_text(LEFT + LEFT.replace("--nnodes 2", "--nproc_per_node auto"))
    status, out, _ = port(*ROUTE, *options, ".")
    assert (status, out.count("  left: ")) == (int(left > 0), left)


def test_known_entries_do_not_fail_and_new_ones_do(folder: Path) -> None:
    (folder / "a.sh").write_text(LEFT)
    assert port(*ROUTE, "--report", "known.json", ".")[0] == 1
    status, out, _ = port(*ROUTE, "--baseline", "known.json", ".")
    assert (status, "left:" in out) == (0, False)
    assert "1 entry known from the baseline; 1 file searched." in out
    (folder / "b.sh").write_text(LEFT)
    status, out, _ = port(*ROUTE, "--baseline", "known.json", ".")
    assert (status, "b.sh\n  1:1  left: " in out, "a.sh" in out) == (1, True, False)


def test_stats_tell_what_is_done_by_file_and_by_rule(folder: Path) -> None:
    (folder / "a.sh").write_text(LAUNCH * 3 + LEFT)
    (folder / "b.sh").write_text("torchrun --nproc_per_node 2 --master_port 1 train.py\n")
    status, out, _ = port(*ROUTE, "--stats", ".")
    assert status == 1
    rows = [line.split() for line in out.splitlines()]
    assert ["a.sh", "3", "1", "0", "75%"] in rows
    assert ["b.sh", "1", "0", "1", "100%"] in rows
    assert ["all", "files", "4", "1", "1", "80%"] in rows
    assert rows[5:7] == [["launch-nodes", "1"], ["launch-port", "1"]]


def test_the_page_shows_stats(folder: Path) -> None:
    (folder / "run.sh").write_text(LAUNCH + LEFT)
    (folder / "train.py").write_text("import torch.distributed as dist\nn = dist.recv(t, 1)\n")
    out = port("--from", "torch", "--to", "paddle-3", "--stats", ".")[1]
    assert f"```\n{out.partition('2 files')[0]}```\n" in (ROOT / "docs" / "porting.md").read_text()


def test_rules_are_counted_before_the_list(folder: Path) -> None:
    (folder / "a.sh").write_text(LEFT * 2 + LEFT.replace("--nnodes 2", "--nproc_per_node auto"))
    out = port(*ROUTE, "--no-diff", ".")[1]
    assert out.startswith("left: 2 launch-nodes, 1 launch-ranks\na.sh\n")
    assert "\nshim port --explain RULE shows code before and after.\n" in out


def test_marks_are_written_on_request(folder: Path) -> None:
    source = "import torch.distributed as dist\ndist.recv(t)\n"
    for options, marks in ([], 0), (["--mark", "--ignore", "any-*"], 0), (["--mark"], 1):
        (folder / "a.py").write_text(source)
        port(*ROUTE, *options, "--write", ".")
        assert (folder / "a.py").read_text().count("\n# shim: left: ") == marks


def test_the_command_that_verifies_is_proposed(folder: Path) -> None:
    (folder / "train.py").write_text("import torch.distributed as dist\ndist.barrier()\n")
    (folder / "run.sh").write_text(LAUNCH)
    command = "shim port --from torch --to mindspore --verify 'shim run -n 2 train.py' ."
    assert port(*ROUTE, "--no-diff", ".")[1].endswith(f"\nTo compare the original with the port: {command}\n")
    assert json.loads(port(*ROUTE, "--format", "json", ".")[1])["verify"] == command
    assert f"```\n{command}\n```" in port(*ROUTE, "--format", "markdown", ".")[1]
    other = port(*ROUTE, "--scope", "statements", "--onto", "native", ".")[1]
    assert "--to mindspore --scope statements --verify 'shim run -n 2 train.py' .\n" in other
    for option in ("--check", "--stats", "--write"):
        assert "To compare" not in port(*ROUTE, option, ".")[1]


def test_the_hook_of_pre_commit_checks_the_files_that_it_is_given(folder: Path) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (folder / "a.sh").write_text(LAUNCH)
    (folder / "b.sh").write_text(LEFT)
    arguments = shlex.split(hook["entry"])
    assert arguments[:2] == ["shim", "port"]
    status, out, _ = port(*arguments[2:], *ROUTE, "a.sh", "b.sh")
    assert (status, "+shim run" in out, "b.sh\n  1:1  left: " in out) == (1, True, True)
    [libcst] = [line for line in (ROOT / "pyproject.toml").read_text().splitlines() if line.startswith('  "libcst')][:1]
    assert hook["additional_dependencies"] == [libcst.split('"')[1]]


def test_explain_prints_a_rules_page(folder: Path) -> None:
    status, out, _ = port("--explain", "any-source")
    assert (status, out.startswith("## any-source\n")) == (0, True)
    assert "dist.recv(t, src=1)" in out
    status, _, err = port("--explain", "any-sauce")
    assert (status, "is it any-source?" in err) == (2, True)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "shim", "port", *arguments]


@pytest.mark.programs("git")
def test_in_a_pipe_the_output_is_a_patch(folder: Path) -> None:
    (folder / "a.sh").write_bytes(b"# \xff caf\xc3\xa9\r\n" + LAUNCH.replace("\n", "\r\n").encode())
    done = subprocess.run(command(*ROUTE, "a.sh"), capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"})
    subprocess.run(["git", "apply", "-"], input=done.stdout, check=True)
    assert (folder / "a.sh").read_bytes() == b"# \xff caf\xc3\xa9\r\n" + PORTED.replace("\n", "\r\n").encode()
    assert done.stderr == b""


@pytest.mark.parametrize(
    "form",
    [[], *(pytest.param(["--format", name], marks=pytest.mark.nightly) for name in ("json", "markdown", "sarif"))],
)
def test_names_and_lines_that_have_no_encoding_are_shown_all_the_same(folder: Path, form: list[str]) -> None:
    Path(os.fsdecode(b"caf\xe9 \xc3\xa9.sh")).write_bytes(
        b"torchrun --nnodes=\xff train.py # \xc3\xa9\n" + LAUNCH.encode()
    )
    for encoding in ("utf-8", "ascii"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(command(*ROUTE, *form, "."), capture_output=True, check=False, env=environment)
        assert (done.returncode, done.stderr) == (1, b"")
        assert b"launch-nodes" in done.stdout


def test_a_reader_that_goes_ends_the_command_quietly(folder: Path) -> None:
    (folder / "a.sh").write_text(LAUNCH * 10_000)
    with subprocess.Popen(command(*ROUTE, "."), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_terminal_sees_progress_and_colours(folder: Path) -> None:
    (folder / "a.sh").write_text(LAUNCH)
    here, there = pty.openpty()
    with subprocess.Popen(
        command(*ROUTE, "a.sh"), stdout=there, stderr=there, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(there)
        shown = b""
        while True:
            try:
                shown += os.read(here, 10_000)
            except OSError:
                break
    os.close(here)
    assert process.returncode == 0
    assert b"porting" in shown
    assert b"\x1b[32m+shim run -n 2 train.py" in shown
