"""What happens in the process that ranks are copies of: it imports modules, makes copies, and sees them end.

A request is a byte, with which a copy's three descriptors come, and an object: the variables of a new copy, whose process id is answered,
the process id of one to wait for, whose status is, or None, which is answered when the imports have ended.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

from shim.launch.endings import dying_with
from shim.launch.pool_rank import serve


def main() -> None:
    """Serve requests until the other end is closed, as it is when its process dies. Arguments after the descriptor name the modules to import.

    That its parent dies is not asked of the kernel, which would tell of the thread that started this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at a terminal reaches all; the pool ends its ranks itself
    requests = socket.socket(fileno=int(sys.argv[1]))
    messages = Connection(os.dup(requests.fileno()))
    for module in sys.argv[2:]:
        importlib.import_module(module)
    gc.freeze()  # or each copy's collector would look at, and so copy, all that the modules hold
    while True:
        begin, descriptors, _, _ = socket.recv_fds(requests, 1, 3)
        if not begin:
            return
        request = messages.recv()
        answer = 0
        if request is not None:
            answer = _reaped(request) if isinstance(request, int) else _copied(request, descriptors, requests, messages)
        messages.send(answer)


def _reaped(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _copied(
    variables: Mapping[str, str], descriptors: Sequence[int], requests: socket.socket, messages: Connection
) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    die_too = dying_with(os.getpid())
    pid = os.fork()
    if pid == 0:
        try:
            die_too()
            requests.close()
            messages.close()
            _be_rank(variables, *descriptors)
        finally:
            os._exit(0)  # what this process would do at its end is the business of the one it was copied from
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def _be_rank(variables: Mapping[str, str], tasks: int, answers: int, output: int) -> None:
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.update(variables)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()  # which Python itself does with ``random``; else all ranks would draw the same
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    serve(tasks, answers)
