"""``python ssh_stand_in.py NAME=PID... -- HOST COMMAND...``: do what ssh does, with namespaces for hosts.

The command runs in a shell on the host, in a session and a clean environment of its own. When this process dies it sees the end of
its standard input, and nothing else.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

_ENTER = Path(__file__).with_name("enter_host.py")
_CLEAN = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"}


def copy(source: int, to: int, closes: IO[bytes] | None = None) -> None:
    while text := os.read(source, 1 << 16):
        try:
            os.write(to, text)
        except BrokenPipeError:
            break
    if closes is not None:
        closes.close()


def main() -> None:
    end = sys.argv.index("--")
    holders = dict(one.split("=") for one in sys.argv[1:end])
    host, *words = itertools.dropwhile(
        lambda word: word.startswith("-"), sys.argv[end + 1 :]
    )  # options as mpirun gives
    command = " ".join(words)
    if host not in holders:
        sys.stderr.write(f"ssh: Could not resolve hostname {host}: Name or service not known\n")
        sys.exit(255)
    shell = [sys.executable, "-I", "-S", str(_ENTER), holders[host], "sh", "-c", f"cd / && {command}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    remote = subprocess.Popen(shell, env=_CLEAN, start_new_session=True, bufsize=0, **pipes)
    assert None not in (remote.stdin, remote.stdout, remote.stderr)
    threading.Thread(target=copy, args=(0, remote.stdin.fileno(), remote.stdin), daemon=True).start()
    outputs = [(remote.stdout.fileno(), 1), (remote.stderr.fileno(), 2)]
    copying = [threading.Thread(target=copy, args=pair) for pair in outputs]
    for one in copying:
        one.start()
    for one in copying:
        one.join()
    status = remote.wait()
    os._exit(128 - status if status < 0 else status)


main()
