"""A port of many files: nothing that is wrong with one of them ends it, or damages the file; after Ctrl-C and the end of the command no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from port_functions import IMPORT, PORTED, port_imports, port_with_accidents

from shim.port.plan import Plan, Ported, Result
from shim.port.run import MOST_BYTES, port_paths, write_files

PLAN = Plan("torch", "mindspore")


def run(folder: Path, jobs: int = 1, port=port_imports, **settings) -> Result:
    return port_paths([folder], PLAN, jobs=jobs, port=port, **settings)


def write(result: Result) -> dict[str, str | None]:
    return {file.path.name: file.problem and file.problem.why for file in write_files(result)}


KEPT = {
    "bom.py": b"\xef\xbb\xbf%s\r\nx = 1\r\n",
    "latin.py": b"# coding: latin-1\n%s\ns = '\xe4'\n",
    "mixed.py": b"a = 1\r\n%s\nb = 2\rc = 3",
    "feeds.py": b"\x0c\n%s\n\x0c\nclass A: pass\n\x0c",
    "no_end.py": b"%s",
    "tabs.py": b"%s\nif 1:\n\tx = 1 \n\n\n\n",
    "notebook.ipynb": b'{"cells": [{"cell_type": "code", "source": ["%s"]}]}\r\n',
}


@pytest.mark.parametrize("name", KEPT)
def test_everything_beside_the_ported_place_keeps_its_bytes(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(KEPT[name] % IMPORT.encode())
    result = run(tmp_path)
    assert (result.places, [file.problem for file in result.files]) == (1, [None])
    assert write(result) == {name: None}
    assert file.read_bytes() == KEPT[name] % PORTED.encode()


BY_THE_PORT = {
    "crlf.py": "\ufeffimport torch.distributed as dist\r\n\f\r\n\fdef f():\r\n    return {}\r\n",
    "mixed.py": "# coding: utf-8\nimport torch.distributed as dist\r\n\f{}; s = 'ä'\r{}",
    "cell.ipynb": '{{"cells": [{{"cell_type": "code", "source": ["%time x\\n", "import torch.distributed as dist\\n", "{}"]}}]}}',
}


@pytest.mark.parametrize("name", BY_THE_PORT)
def test_the_port_itself_keeps_all_else_too(tmp_path: Path, name: str) -> None:
    text = BY_THE_PORT[name].replace("{{", "{").replace("}}", "}")
    (tmp_path / name).write_bytes(text.replace("{}", "dist.all_to_all_single(x, y, async_op=True)").encode())
    result = port_paths([tmp_path], Plan("torch", "paddle_3"), jobs=1)
    expected = text.replace("{}", "dist.alltoall_single(x, y, sync_op=False)")
    assert write(result) == {name: None}
    assert (tmp_path / name).read_bytes().decode() == expected.replace("import torch", "import shim.frontends.paddle_3")


CODE = IMPORT.encode() + b"\n"
PROBLEMS = {
    "python_2.py": (CODE + b"print 'a'\n", "not Python 3, line 2"),
    "undecodable.py": (CODE + b"s = '\xff'\n", "cannot decode"),
    "binary.py": (CODE + b"\0", "zero bytes"),
    "huge.py": (CODE + b"#" * MOST_BYTES, "more than"),
    "huge.md": (b"#" * MOST_BYTES + b"torchrun --nproc_per_node 2 a.py", "more than"),
    "huge_alias.py": (b"import torch as t\n" + b"#" * MOST_BYTES + b"\nt.distributed.barrier()", "more than"),
    "raises.py": (CODE + b"# raises", "KeyError"),
    "nests.py": (CODE + b"# nests", "nested too deeply"),
    "breaks.py": (CODE + b"# breaks", "would not be Python"),
    "broken.ipynb": (b'{"cells": [' + CODE, "not JSON"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_file_that_cannot_be_ported_is_told_and_stays(tmp_path: Path, name: str) -> None:
    content, why = PROBLEMS[name]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "good.py").write_bytes(CODE)
    result = run(tmp_path, port=port_with_accidents)
    [file] = result.unported
    assert file.problem is not None
    assert why in file.problem.why
    assert file.problem.advice
    assert write(result) == {"good.py": None}
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("content", [b"\0\1\2", b"print 'a'", b"s = '\xff'", b"#" * (MOST_BYTES + 1)])
def test_a_file_that_does_not_use_the_api_is_none_of_our_business(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.py").write_bytes(content)
    assert run(tmp_path).files == []


def test_what_is_no_regular_file_is_told_when_it_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "nowhere.py").symlink_to("nothing")
    result = port_paths([tmp_path / "pipe.py", tmp_path / "nowhere.py"], PLAN, jobs=1, port=port_imports)
    assert ["not there" in str(file.problem) or "regular" in str(file.problem) for file in result.files] == [True, True]


@pytest.mark.parametrize("closed", ["folder", "folder/x.py"])
def test_what_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.py").write_bytes(CODE)
    (tmp_path / "y.py").write_bytes(CODE)

    def closing(function):
        def called(path, *arguments, **settings):
            if os.fspath(path) == str(tmp_path / closed):
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *arguments, **settings)

        return called

    monkeypatch.setattr(os, "scandir", closing(os.scandir))  # the tests may run as root, who may read everything
    monkeypatch.setattr(os, "listdir", closing(os.listdir))
    monkeypatch.setattr(Path, "open", closing(Path.open))
    result = run(tmp_path)
    [file] = result.unported
    assert (file.path, file.problem and file.problem.why) == (
        tmp_path / closed,
        "it could not be read: Permission denied",
    )
    assert result.places == 1


def test_a_path_below_a_file_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(CODE)
    with pytest.raises(FileNotFoundError):
        run(tmp_path / "x.py" / "y.py")


def test_a_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    [file] = run(tmp_path / ("n" * 300)).files
    assert "too long" in str(file.problem)


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.data").write_bytes(CODE)
    (tmp_path / "link.py").symlink_to("real.data")
    assert write(run(tmp_path)) == {"link.py": None}
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.data").read_text() == PORTED + "\n"


def test_a_file_that_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(CODE)
    result = run(tmp_path)
    (tmp_path / "x.py").write_bytes(b"y = 1")
    [why] = write(result).values()
    assert "changed since" in str(why)
    assert (tmp_path / "x.py").read_bytes() == b"y = 1"


def test_a_second_port_finds_nothing_to_change(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(CODE)
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 a.py\n")
    assert set(write(run(tmp_path))) == {"x.py", "run.sh"}
    assert write(run(tmp_path)) == {}


PADDING = b"#" * 300_000 + b"\n"


def test_several_processes_do_what_one_does(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"x{number}.py").write_bytes(CODE + b"dist.monitored_barrier()\n" * number + PADDING)
    told: list[tuple[int, int]] = []
    several = run(tmp_path, jobs=2, progress=lambda done, total: told.append((done, total)))
    assert several == run(tmp_path)
    assert several.count("left") == 15
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]


def test_the_largest_file_is_ported_first(tmp_path: Path) -> None:
    seen: list[int] = []

    def port(source: str, plan: Plan) -> Ported:
        seen.append(len(source))
        return port_imports(source, plan)

    for number in (3, 9, 1, 5):
        (tmp_path / f"x{number}.py").write_bytes(CODE * number)
    run(tmp_path, port=port)
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 4


def test_a_process_that_dies_takes_only_its_file_with_it(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"x{number}.py").write_bytes(CODE + b"# dies\n" * (number == 3) + PADDING)
    result = run(tmp_path, jobs=2, port=port_with_accidents)
    assert [(file.path.name, file.problem and file.problem.why) for file in result.files] == [
        (f"x{number}.py", "the process that ported it died" if number == 3 else None) for number in range(6)
    ]


INTERRUPTED = """
import os, sys, time
from pathlib import Path
from shim.port import Plan
from shim.port.run import port_paths

def slow(source, plan):
    os.write(1, f"begun {os.getpid()}\\n".encode())  # in one piece: two workers write to this pipe
    time.sleep(60)

if __name__ == "__main__":
    try:
        port_paths([Path(sys.argv[1])], Plan("torch", "mindspore"), jobs=2, port=slow)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left(tmp_path: Path, number: signal.Signals) -> None:
    program, folder = tmp_path / "program.py", tmp_path / "sources"
    program.write_text(INTERRUPTED)
    folder.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (folder / name).write_text(f"{IMPORT}\n{'#' * 200_000}\n")
    with subprocess.Popen(
        [sys.executable, str(program), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline() for _ in range(2)]
        assert all(line.startswith("begun ") for line in lines), (lines, process.stderr.read())
        workers = [int(line.split()[1]) for line in lines]
        for worker in workers:  # they leave Ctrl-C to the command
            [ignored] = [
                line.split()[1]
                for line in Path(f"/proc/{worker}/status").read_text().splitlines()
                if line.startswith("SigIgn")
            ]
            assert int(ignored, 16) & 1 << signal.SIGINT - 1
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
            assert process.stdout.read() == "interrupted\n"
            assert process.stderr.read() == ""
        else:
            process.kill()
        process.wait(10)
    until = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.01)
