"""``shim run`` as a user meets it: a command with two streams and an exit status."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from shim_run import DEADLINE, environment, heed_signals, run, start

from shim import __version__
from shim.cli import _app
from shim.launch.identity import SETTABLE, launcher_variables

WHO = """
    import os, sys
    print(os.environ["SHIM_RANK"], os.environ["SHIM_WORLD_SIZE"], sys.argv[1:])
    print("error of", os.environ["SHIM_RANK"], file=sys.stderr)
"""


@pytest.mark.parametrize("size", [1, 2, 3])
def test_each_rank_runs_the_program_and_its_lines_keep_their_stream(size: int, script: Callable[[str], str]) -> None:
    done = run("-n", str(size), script(WHO), "--flag", "-n", "7", "--", "x y")
    given = ["--flag", "-n", "7", "--", "x y"]
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] {rank} {size} {given}" for rank in range(size)]
    assert sorted(done.stderr.splitlines()) == [f"[{rank}] error of {rank}" for rank in range(size)]


def test_options_may_be_parted_from_the_program_by_two_dashes(script: Callable[[str], str]) -> None:
    done = run("-n", "1", "--", script(WHO), "--flag")
    assert (done.returncode, done.stdout) == (0, "[0] 0 1 ['--flag']\n")


def test_a_module_is_run_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "module.py").write_text("import sys; print(__name__, __package__, sys.argv[1:])")
    done = run("-n", "2", "-m", "package.module", "--flag", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] __main__ package ['--flag']" for rank in range(2)]


def test_the_environment_tells_a_rank_what_scripts_for_torchrun_look_for(script: Callable[[str], str]) -> None:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "OMP_NUM_THREADS", "COLOUR")
    program = script(
        f"import os; print([os.environ.get(name) for name in {names}], int(os.environ['MASTER_PORT']) > 0)"
    )
    done = run("-n", "2", "--env", "COLOUR=a=b", program)
    assert sorted(done.stdout.splitlines()) == [
        f"[{rank}] {[str(rank), '2', str(rank), '2', '127.0.0.1', '1', 'a=b']} True" for rank in range(2)
    ]


def test_the_environment_repeats_what_each_framework_s_launcher_sets(script: Callable[[str], str]) -> None:
    """``tests/core/job/test_rendezvous.py`` shows that this process and those it starts are not taken for another launcher's."""
    names = [name for name in launcher_variables(0, 1, "", [""]) if name.isupper()]
    done = run("-n", "2", script(f"import json, os; print(json.dumps([os.environ[name] for name in {names}]))"))
    ranks = [
        dict(zip(names, json.loads(line.partition(" ")[2]), strict=True)) for line in sorted(done.stdout.splitlines())
    ]
    endpoints = ranks[0]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert len(set(endpoints)) == 2
    for rank, seen in enumerate(ranks):
        assert seen == launcher_variables(rank, 2, ranks[0]["TORCHELASTIC_RUN_ID"], endpoints)
        ids = ("PADDLE_TRAINER_ID", "PADDLE_LOCAL_RANK", "RANK_ID", "DEVICE_ID", "MS_NODE_ID", "ROLE_RANK")
        assert {seen[name] for name in ids} == {str(rank)}
        assert {seen[name] for name in ("PADDLE_TRAINERS_NUM", "RANK_SIZE", "MS_WORKER_NUM")} == {"2"}
        assert seen["PADDLE_CURRENT_ENDPOINT"] == endpoints[rank]


def test_what_tells_no_rank_who_it_is_can_be_set(script: Callable[[str], str]) -> None:
    program = script(f"import os; print(*[os.environ[name] for name in {sorted(SETTABLE)}])")
    settings = [word for number, name in enumerate(sorted(SETTABLE)) for word in ("--env", f"{name}={number}")]
    done = run("-n", "2", *settings, program)
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] 0 1" for rank in range(2)], done.stderr
    assert set(launcher_variables(0, 1, "", [""])) >= SETTABLE


def test_threads_and_address_that_are_set_are_kept(script: Callable[[str], str]) -> None:
    program = script("import os; print(*[os.environ[n] for n in ('OMP_NUM_THREADS', 'MASTER_ADDR', 'MASTER_PORT')])")
    done = run("-n", "2", program, env=environment(OMP_NUM_THREADS="3", MASTER_ADDR="localhost", MASTER_PORT="7"))
    assert sorted(done.stdout.splitlines()) == ["[0] 3 localhost 7", "[1] 3 localhost 7"]
    done = run("-n", "1", "--env", "MASTER_PORT=9", program, env=environment(OMP_NUM_THREADS="3"))
    assert done.stdout == "[0] 3 127.0.0.1 9\n"


def test_lines_stay_whole_whatever_pieces_they_are_written_in(script: Callable[[str], str]) -> None:
    program = script("""
        import os, time
        rank = os.environ["RANK"]
        for number in range(50):
            for piece in (f"{rank}:", str(number), "," + "x" * 3000, "\\n"):
                os.write(1, piece.encode())
                if number % 10 == 0: time.sleep(0.001)
        os.write(1, b"no newline at the end")
    """)
    done = run("-n", "2", program)
    for rank in range(2):
        mine = [line for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")]
        expected = [f"[{rank}] {rank}:{number},{'x' * 3000}" for number in range(50)]
        assert mine == [*expected, f"[{rank}] no newline at the end"]
    assert len(done.stdout.splitlines()) == 102


def test_output_appears_when_it_is_printed(script: Callable[[str], str]) -> None:
    program = script("import time; print('early'); time.sleep(60)")
    with start("-n", "1", program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[0] early\n"
        process.terminate()
        assert process.wait(DEADLINE) == 128 + signal.SIGTERM


def test_only_rank_0_reads_the_input(script: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "input").write_text("some words")
    program = script("import os, sys; print(os.environ['RANK'], repr(sys.stdin.read()))")
    command = [sys.executable, "-m", "shim", "run", "-n", "2", program]
    with open(tmp_path / "input") as words:
        done = subprocess.run(command, stdin=words, capture_output=True, text=True, env=environment(), timeout=DEADLINE)
    assert sorted(done.stdout.splitlines()) == ["[0] 0 'some words'", "[1] 1 ''"]


def test_the_rank_is_coloured_on_a_terminal(script: Callable[[str], str]) -> None:
    terminal, end = pty.openpty()
    variables = environment()
    del variables["NO_COLOR"]
    command = [sys.executable, "-m", "shim", "run", "-n", "2", script(WHO)]
    done = subprocess.run(command, stdout=end, stderr=subprocess.PIPE, text=True, env=variables, timeout=DEADLINE)
    os.close(end)
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    colours = re.findall(r"\x1b\[(\d+)m\[(\d)\]\x1b\[0m \d 2 \[\]", shown)
    assert sorted(rank for _, rank in colours) == ["0", "1"]
    assert len({colour for colour, _ in colours}) == 2
    assert sorted(done.stderr.splitlines()) == ["[0] error of 0", "[1] error of 1"]


@pytest.mark.parametrize("on_terminal", [False, True])
def test_ranks_lead_groups_and_have_sessions_of_their_own_where_there_is_a_terminal(
    on_terminal: bool, script: Callable[[str], str]
) -> None:
    terminal, end = pty.openpty()
    program = script("import os; print(os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid())")

    def in_a_session() -> None:
        os.setsid()
        if on_terminal:
            fcntl.ioctl(end, termios.TIOCSCTTY, 0)

    command = [sys.executable, "-m", "shim", "run", "-n", "2", program]
    with subprocess.Popen(
        command, stdin=end, stdout=subprocess.PIPE, text=True, env=environment(), preexec_fn=in_a_session
    ) as process:
        told, _ = process.communicate(timeout=DEADLINE)
    os.close(terminal)
    os.close(end)
    assert sorted(told.splitlines()) == [f"[{rank}] True {on_terminal}" for rank in range(2)]


def test_log_files_hold_each_stream_of_each_rank_as_it_was(script: Callable[[str], str], tmp_path: Path) -> None:
    done = run("-n", "2", "--log-dir", str(tmp_path / "new" / "logs"), script(WHO))
    assert done.returncode == 0
    logs = {path.name: path.read_text() for path in (tmp_path / "new" / "logs").iterdir()}
    assert logs == {
        **{f"rank{rank}.stdout": f"{rank} 2 []\n" for rank in range(2)},
        **{f"rank{rank}.stderr": f"error of {rank}\n" for rank in range(2)},
    }
    assert sorted(done.stdout.splitlines()) == ["[0] 0 2 []", "[1] 1 2 []"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'SCRIPT'"),
        (("program.py",), "Missing option '-n'"),
        (("program.py", "-n", "2"), "Write it before the script: shim run -n 2 program.py"),
        (("program.py", "--nproc-per-node", "2", "--more"), "script: shim run --nproc-per-node 2 program.py"),
        (("-n", "0", "program.py"), "-n must be at least 1 and at most 512, got 0"),
        (("-n", "-2", "program.py"), "-n must be at least 1 and at most 512, got -2"),
        (("-n", "10000", "program.py"), "-n must be at least 1 and at most 512, got 10000"),
        (("-n", "two", "program.py"), "must be a whole number, got 'two'"),
        (("-np", "two", "program.py"), "must be a whole number, got 'two'"),
        (("-n", "2", "--max-restarts", "-1", "program.py"), "greater than or equal to 0, got '-1'"),
        (("-n", "2", "--keep-going", "--max-restarts", "1", "program.py"), "exclude each other"),
        (("-n", "2", "--replace", "1", "--max-restarts", "1", "program.py"), "exclude each other"),
        (("-n", "2", "--keepgoing", "program.py"), "--keep-going"),
        (("-n", "2"), "Missing argument 'SCRIPT'"),
        (("-n", "2", "absent.py", "-n", "2"), "there is no script 'absent.py' in FOLDER"),
        (("-n", "2", "progam.py"), "is it 'program.py'?"),
        (("-n", "2", "python", "program.py"), "give the script itself, without `python`"),
        (("-n", "2", "absent"), "`-m absent` runs a module"),
        (("-n", "2", "folder"), "there is no __main__.py in 'folder'"),
        (("-n", "2", "--as-installed", "empty.zip"), "there is no __main__.py in 'empty.zip'"),
        (("-n", "2", "--unknown", "program.py"), "No such option: --unknown"),
        (("-n", "2", "--env", "NAME", "program.py"), "--env must be NAME=VALUE, got 'NAME'"),
        (("-n", "2", "--env", "RANK=1", "program.py"), "--env cannot set RANK"),
        (("-n", "2", "--env", "PADDLE_TRAINER_ID=1", "program.py"), "--env cannot set PADDLE_TRAINER_ID"),
        (("-n", "2", "--env", "TORCHELASTIC_RUN_ID=1", "program.py"), "--env cannot set TORCHELASTIC_RUN_ID"),
        (("-n", "2", "--env", "OMPI_COMM_WORLD_RANK=0", "program.py"), "--env cannot set OMPI_COMM_WORLD_RANK"),
        (("-n", "2", "--log-dir", "/dev/null/logs", "program.py"), "--log-dir: "),
    ],
)
def test_wrong_usage_is_explained_and_has_status_2(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("")
    (tmp_path / "folder").mkdir()
    zipfile.ZipFile(tmp_path / "empty.zip", "w").close()
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message.replace("FOLDER", str(tmp_path)) in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_more_ranks_than_files_can_be_opened_are_refused_before_any_is_started(script: Callable[[str], str]) -> None:
    command = f"ulimit -n 20; exec {shlex.quote(sys.executable)} -m shim run -n 4 {shlex.quote(script(WHO))}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), timeout=DEADLINE)
    assert done.returncode == 2
    assert "-n 4 takes about 28 open files, and this shell allows 20; `ulimit -n 28`" in done.stderr
    assert done.stdout == ""


def test_an_interrupt_while_the_command_still_imports_shows_no_traceback(script: Callable[[str], str]) -> None:
    """It comes when typer, which takes most of that time, is looked for."""
    program = """
        import os, runpy, signal, sys
        class Interrupting:
            def find_spec(self, name, *_):
                if name == "typer":
                    os.kill(os.getpid(), signal.SIGINT)
        sys.meta_path.insert(0, Interrupting())
        runpy.run_module("shim", run_name="__main__")
    """
    command = [sys.executable, script(program), "run", "-n", "2", "absent.py"]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE, env=environment(), preexec_fn=heed_signals
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize("option", ["-n2", "-np 2", "--nproc-per-node 2", "--nproc_per_node=2"])
def test_the_number_of_ranks_by_each_launcher_s_name_of_the_option(option: str, script: Callable[[str], str]) -> None:
    done = run(*option.split(), script(WHO))
    assert sorted(done.stdout.splitlines()) == ["[0] 0 2 []", "[1] 1 2 []"]


@pytest.mark.parametrize(
    "command", ["", "run", "doctor", "bench", "bench run", "bench check", "conformance", "conformance soak"]
)
def test_help_has_a_short_name_everywhere(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shim(*command.split(), "-h") == 0
    assert f"Usage: shim {command}".rstrip() in capsys.readouterr().out


EVERY = ["", "run", "port", "doctor", "version", *(f"trace {name}".strip() for name in ("", "run", "show", "diff", "replay")),
    *(f"conformance {name}".strip() for name in ("", "run", "signatures", "tables", "soak", "list")),
    *(f"bench {name}".strip() for name in ("", "run", "check", "show"))]  # fmt: skip


@pytest.mark.parametrize("command", EVERY)
def test_help_names_no_types_but_choices_and_the_usage_what_is_typed(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shim(*command.split(), "--help") == 0
    told = capsys.readouterr().out
    assert re.findall(r"<(?!shim\|native|collectives\||text\|)[^>]*>|[{}]|-h +<", told) == []
    usage = told.split("Usage: ")[1].splitlines()[0].split("[OPTIONS]")[1].split()
    ends = {"run": "SCRIPT [ARGS]...", "trace run": "SCRIPT [ARGS]...", "port": "PATH...", "trace diff": "A B"}
    ends |= {"conformance run": "[FILES]...", "conformance list": "[FILES]...", "trace show": "FOLDER"}
    assert " ".join(usage) == ends.get(command, " ".join(usage))


def test_the_version_has_a_short_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert shim("-V") == shim("--version") == 0
    one, other = capsys.readouterr().out.splitlines()
    assert one == other == f"shim {__version__}"


@pytest.mark.parametrize(
    ("typed", "completed"), [("ru", ["run"]), ("run --keep", ["--keep-going"]), ("trace sh", ["show"])]
)
def test_shells_complete_commands_and_options(typed: str, completed: list[str]) -> None:
    words = ["shim", *typed.split()]
    asked = {"_SHIM_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    told = subprocess.run(
        [sys.executable, "-m", "shim"], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert (told.stdout.split(), told.stderr) == (completed, "")


def test_all_that_a_report_needs_and_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIM_SECRET", "not for other eyes")
    monkeypatch.setenv("SHIM_ENGINE", "plain")
    assert shim("version") == 0
    assert capsys.readouterr().out == f"shim {__version__}\n"
    assert shim("version", "--all") == 0
    told = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines()[1:])
    assert told["python"].split()[0] == platform.python_version()
    assert told["numpy"] == metadata.version("numpy")
    assert (told["SHIM_ENGINE"], told["SHIM_SECRET"]) == ("plain", "set, not shown")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rnu -n 2", "No such command 'rnu'. Did you mean 'run'?"),
        ("bench chek", "Did you mean 'check'?"),
        ("doctor --timeout soon", "must be a number, got 'soon'"),
        ("bench run --rounds 0", "greater than or equal to 1, got '0'"),
    ],
)
def test_mistyped_words_of_any_command_are_named(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shim(*words.split()) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def shim(*words: str) -> int:
    """Run the command line in this process, and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        _app(list(words), prog_name="shim")
    return int(str(ended.value.code))


def test_help_tells_how_programs_get_their_arguments() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "Options of `shim run` come before SCRIPT" in " ".join(done.stdout.split())
