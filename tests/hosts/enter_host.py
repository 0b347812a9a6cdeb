"""``python enter_host.py PID COMMAND...``: run a command in the network, hostname and mounts of process PID, and in this folder."""

from __future__ import annotations

import ctypes
import os
import sys


def main() -> None:
    process, command, folder = sys.argv[1], sys.argv[2:], os.getcwd()
    setns = ctypes.CDLL(None, use_errno=True).setns  # os.setns came with Python 3.12
    namespaces = [os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "uts", "mnt")]
    for namespace in namespaces:
        if setns(namespace, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    os.chdir(folder)  # setns of the mounts has left it
    os.execvp(command[0], command)


main()
