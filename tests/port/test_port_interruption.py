"""Ctrl-C and the end of the command: no process stays, and nothing but the message is printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from port_functions import IMPORT

PROGRAM = """
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
    program.write_text(PROGRAM)
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
