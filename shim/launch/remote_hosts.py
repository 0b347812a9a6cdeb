"""A job on several hosts: `shim run` started on each of them over ssh, watched, sent this one's signals, and ended when one of them fails."""

from __future__ import annotations

import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from types import FrameType
from typing import IO, Any

from shim.launch.endings import COMMAND_GRACE, ENDING, NOTICE, dying_with, signals_to
from shim.launch.identity import new_job_key
from shim.launch.orders import MARK, Orders, as_line, failure_of
from shim.launch.output import Failure, OutputClosed, first_of_all, prefix_of, tell, write_all

_STDOUT, _STDERR = 1, 2
_PATIENCE = 60.0  # seconds for ssh, and for Python on the other host, to begin
_MARGIN = 3.0  # seconds for a host to tell that its ranks have been killed
_PULSE = 1.0  # seconds between the empty lines that show that somebody is here
_OF_RANK = re.compile(rb"\[(\d+)\] ")


@dataclass(frozen=True)
class Plan:
    """What to run where: *arguments* of `shim run` on each of *hosts*, as ssh knows them, which have so many ranks each (*counts*).

    *ssh* is the program that is given a host and a command line; *address* is where ranks meet, a port of 0 being one that is free there.
    *environment* is for the ranks, and is not shown in any command line.
    """

    hosts: Sequence[str]
    counts: Sequence[int]
    ssh: Sequence[str]
    arguments: Sequence[str]
    address: str
    environment: Mapping[str, str] = field(repr=False)
    keep_going: bool = False

    def command_of(self, number: int) -> list[str]:
        """Return the command that starts the ranks of one host. Its shell may be of any kind."""
        path = os.environ.get("PYTHONPATH")
        python = [*(["env", f"PYTHONPATH={path}"] if path else []), sys.executable, "-m", "shim", "run", "--attached"]
        place = ["--nnodes", str(len(self.hosts)), "--node-rank", str(number), "-n", str(self.counts[number])]
        line = f"cd {shlex.quote(os.getcwd())} && exec {shlex.join([*python, *place, *self.arguments])}"
        return [*self.ssh, self.hosts[number], line]


def run_on_hosts(plan: Plan) -> int:
    """Run the ranks of *plan* until all have ended, and return the exit status: by the rules of ``run_ranks``, 1 where a host is lost."""
    with ExitStack() as stack:
        hosts = _Hosts(plan)
        signals = stack.enter_context(signals_to(hosts.take_signal))
        stack.callback(hosts.close)
        try:
            hosts.start()
            hosts.watch(signals)
            return hosts.conclude()
        except OutputClosed as closed:
            if not closed.args:
                return 128 + signal.SIGPIPE
            with suppress(OutputClosed):
                _say(f"what the ranks print cannot be written: {closed}")
            return 1


def _say(text: str) -> None:
    write_all(_STDERR, f"shim run: {text}\n".encode())


class _Host:
    """The connection to one host: the ssh that started `shim run` there."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.ports: list[int] | None = None  # that were free there when it began
        self.status: int | None = None  # of ssh
        self.told_status: int | None = None  # by the `shim run` there when all its ranks had ended
        self.failure: Failure | None = None
        self.was_told_to_end = False
        self.said: list[bytes] = []  # before it began
        self._has_orders = False
        self._untaken = b""  # of what it was sent: the pipe was full
        self._unfinished = {_STDOUT: b"", _STDERR: b""}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # a terminal's Ctrl-C is for this process, which passes it on
            preexec_fn=dying_with(os.getpid()),
        )
        self.pidfd = os.pidfd_open(self.process.pid)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.streams: dict[int, IO[bytes]] = {_STDOUT: self.process.stdout, _STDERR: self.process.stderr}
        assert self.process.stdin is not None
        for stream in (*self.streams.values(), self.process.stdin):
            os.set_blocking(stream.fileno(), False)

    @property
    def is_there(self) -> bool:
        """Whether it has been given its orders, and has not ended."""
        return self._has_orders and self.status is None

    def give(self, message: Mapping[str, Any] | None) -> None:
        """Send a message; None only shows that somebody is here. What a full pipe does not take goes with the next one."""
        assert self.process.stdin is not None
        if message is not None and "orders" in message:
            self._has_orders = True
        self._untaken += b"\n" if message is None else as_line(message)
        with suppress(BrokenPipeError, BlockingIOError):
            while self._untaken:
                self._untaken = self._untaken[os.write(self.process.stdin.fileno(), self._untaken) :]

    def tell_to_end(self) -> None:
        if self.is_there and not self.was_told_to_end:
            self.was_told_to_end = True
            self.give({"end": True})

    def pass_on(self, to: int) -> bool:
        """Pass on whole lines of one stream, and take what is told in them; tell whether more may come."""
        try:
            text = os.read(self.streams[to].fileno(), 1 << 16)
        except BlockingIOError:
            return True
        *lines, self._unfinished[to] = (self._unfinished[to] + text).split(b"\n")
        if not text and self._unfinished[to]:
            lines.append(self._unfinished[to])
            self._unfinished[to] = b""
        shown = []
        for line in lines:
            if to == _STDERR and line.startswith(MARK):
                self._hear(json.loads(line[len(MARK) :]))
            elif self.ports is None:
                self.said.append(line)
            else:
                shown.append(_coloured(line, to))
        if shown:
            write_all(to, b"".join(line + b"\n" for line in shown))
        return bool(text)

    def _hear(self, message: Mapping[str, Any]) -> None:
        if "ports" in message:
            self.ports, self.said = message["ports"], []
        if "ended" in message:
            self.told_status, self.failure = message["ended"], failure_of(message["failure"])

    def see_end(self) -> None:
        """Note how ssh ended, and take what is left of its output."""
        ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        self.status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        for to in self.streams:
            with selectors.DefaultSelector() as waiting:
                waiting.register(self.streams[to], selectors.EVENT_READ)
                while waiting.select(0) and self.pass_on(to):
                    pass

    def kill(self) -> None:
        """Kill ssh, whose end is seen on the host, and what it has started here."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        self.process.wait()
        os.close(self.pidfd)
        for stream in (*self.streams.values(), self.process.stdin):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]  # it is a pipe


def _coloured(line: bytes, to: int) -> bytes:
    """Return a rank's line as it is shown here: the host does not know of this terminal."""
    found = _OF_RANK.match(line)
    return prefix_of(int(found[1]), to) + line[found.end() :] if found else line


class _Hosts:
    """All hosts of a job, and what has become of it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._hosts: list[_Host] = []
        self._selector = selectors.DefaultSelector()
        self._untaken: list[int] = []  # signals
        self._received: list[int] = []
        self._failures: list[Failure] = []  # in the order in which they were told
        self._statuses: list[int] = []  # of hosts whose ranks did not all end well
        self._have_begun = False
        self._begin_until = time.monotonic() + _PATIENCE
        self._end_at = float("inf")  # when the other hosts are told to end
        self._kill_at = float("inf")

    def start(self) -> None:
        for number, name in enumerate(self._plan.hosts):
            try:
                host = _Host(name, self._plan.command_of(number))
            except OSError as error:
                return self._give_up(f"{self._plan.ssh[0]} cannot be started: {error.strerror}")
            self._hosts.append(host)
            self._selector.register(host.pidfd, selectors.EVENT_READ, partial(self._see_end, host))
            for to, stream in host.streams.items():
                self._selector.register(stream, selectors.EVENT_READ, partial(self._pass_on, host, to))
        return None

    def take_signal(self, number: int, frame: FrameType | None = None) -> None:
        """Note a signal, for ``watch`` to pass on."""
        del frame
        self._untaken.append(number)

    def _pass_signals_on(self) -> None:
        """Pass signals on. Before the ranks have begun, and where they do not end after the second one, the connections are ended."""
        while self._untaken:
            number = self._untaken.pop(0)
            self._received.append(number)
            for host in self._hosts:
                if host.is_there:
                    host.give({"signal": number})
            ending = sum(received in ENDING for received in self._received)
            if ending and not self._have_begun:
                self._kill_at = 0.0
            elif ending > 1:
                self._kill_at = min(self._kill_at, time.monotonic() + COMMAND_GRACE + _MARGIN)

    def watch(self, signals: int) -> None:
        """Pass on output and see the hosts end, until all have."""
        self._selector.register(signals, selectors.EVENT_READ, partial(os.read, signals, 512))
        pulse_at = 0.0
        while any(host.status is None for host in self._hosts):
            now = time.monotonic()
            next_step = min(
                pulse_at, self._end_at, self._kill_at, float("inf") if self._have_begun else self._begin_until
            )
            for key, _ in self._selector.select(max(0.0, next_step - now)):
                key.data()
            self._pass_signals_on()
            self._begin()
            if time.monotonic() >= pulse_at:
                pulse_at = time.monotonic() + _PULSE
                for host in self._hosts:
                    if host.is_there:
                        host.give(None)
            if time.monotonic() >= self._end_at:
                self._end_others()
            if time.monotonic() >= self._kill_at:
                self._kill_at = float("inf")
                for host in self._hosts:
                    host.kill()
        self._pass_signals_on()

    def _begin(self) -> None:
        """Give all hosts their orders, once all are there; give up where one does not come."""
        if self._have_begun or self._statuses:
            return
        if late := [host for host in self._hosts if host.ports is None]:
            if time.monotonic() > self._begin_until:
                self._give_up(f"host {late[0].name} has not begun within {_PATIENCE:.0f} s{_words(late[0].said)}")
            return
        self._have_begun = True
        orders = as_orders(self._plan, [host.ports or [] for host in self._hosts])
        for host in self._hosts:
            host.give({"orders": asdict(orders)})
            for number in self._received:
                host.give({"signal": number})

    def _pass_on(self, host: _Host, to: int) -> None:
        if not host.pass_on(to):
            self._selector.unregister(host.streams[to])

    def _see_end(self, host: _Host) -> None:
        self._selector.unregister(host.pidfd)
        host.see_end()
        if host.failure is not None:
            self._failures.append(host.failure)
        if host.told_status is None:
            self._see_loss(host)
        elif host.told_status:
            self._statuses.append(host.told_status)
            if not self._plan.keep_going:
                self._end_at = min(self._end_at, time.monotonic() + NOTICE)

    def _see_loss(self, host: _Host) -> None:
        """Say that *host* has ended without telling how its ranks did, and end the others."""
        if self._is_to_end() or host.was_told_to_end or (self._statuses and not self._have_begun):
            return
        how = f"{self._plan.ssh[0]} ended with status {host.status}{_words(host.said)}"
        if not self._have_begun:
            self._give_up(f"the ranks of host {host.name} cannot be started: {how}", 2 if host.status == 2 else 1)
        elif self._plan.keep_going:
            self._statuses.append(1)
            _say(f"the connection to host {host.name} is lost: {how}; the others go on")
        else:
            self._give_up(f"the connection to host {host.name} is lost: {how}")

    def _give_up(self, why: str, status: int = 1) -> None:
        self._statuses.append(status)
        _say(why)
        self._end_others()

    def _end_others(self) -> None:
        """Have the ranks end as those of a host do when one fails; hosts that have not begun just now."""
        self._end_at = float("inf")
        for host in self._hosts:
            host.tell_to_end()
        grace = COMMAND_GRACE + _MARGIN if self._have_begun else 0.0
        self._kill_at = min(self._kill_at, time.monotonic() + grace)

    def _is_to_end(self) -> bool:
        return any(number in ENDING for number in self._received)

    def conclude(self) -> int:
        """Say which rank failed first, and return the exit status."""
        if self._failures and not self._is_to_end():
            first = first_of_all(self._failures)
            tell(first, [failure for failure in self._failures if failure is not first])
            return 128 - first.status if first.status < 0 else first.status
        if self._is_to_end() and not self._statuses:
            return 0 if self._all_ended_well() else 128 + next(one for one in self._received if one in ENDING)
        return self._statuses[0] if self._statuses else 0

    def _all_ended_well(self) -> bool:
        return all(host.told_status == 0 for host in self._hosts)

    def close(self) -> None:
        """End what is left."""
        for host in self._hosts:
            host.close()
        self._selector.close()


def _words(lines: Sequence[bytes]) -> str:
    """Return what ssh, or the `shim run` that it started, has written, to follow what is told of it."""
    return f"; it wrote:\n{text}" if (text := b"\n".join(lines).decode(errors="replace").strip()) else ""


def as_orders(plan: Plan, ports: Sequence[Sequence[int]]) -> Orders:
    """Return what all hosts are told, where so many *ports* are free on each: one for each of its ranks, and one more."""
    host, _, port = plan.address.rpartition(":")
    address = plan.address if port != "0" else f"{host}:{ports[0][0]}"
    names = [name.rpartition("@")[2] for name in plan.hosts]
    names = [f"[{name}]" if ":" in name else name for name in names]
    endpoints = [f"{name}:{one}" for name, free in zip(names, ports, strict=True) for one in free[1:]]
    return Orders(new_job_key(), address, list(plan.counts), endpoints, dict(plan.environment))
