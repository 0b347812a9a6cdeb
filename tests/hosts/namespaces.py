"""Hosts made of network namespaces: each has an address, a loopback, a hostname, an /etc/hosts and a /dev/shm of its own.

A process of ours holds each host. The kernel removes a host when its holder and all processes on it have ended, and a
holder ends when the tests that started it do, however these end: nothing needs to be cleaned up after a crash. The hosts are
connected by a bridge, which is in a namespace of its own too, so that several test processes may use the same addresses.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from debian_packages import need, skip

_ENTER = Path(__file__).with_name("enter_host.py")
_SSH = Path(__file__).with_name("ssh_stand_in.py")
_TOOLS = ("ip", "tc", "unshare", "nsenter", "mount")
_PATIENCE = 20.0  # seconds for one command of iproute2, or one holder
_SHORTEST_BURST = 128 << 10  # bytes; a packet that the kernel has yet to cut may have 64 KiB

_HOLD = """
set -e
mount -t tmpfs tmpfs /dev/shm
printf '%s' "$2" > /dev/shm/.hosts
mount --bind /dev/shm/.hosts /etc/hosts
rm /dev/shm/.hosts
printf '%s' "$1" > /proc/sys/kernel/hostname
ip link set lo up
echo ready
exec cat
"""


class _Namespaces:
    """A network namespace, with a hostname and mounts of its own, and the process that holds it."""

    def __init__(self, name: str, names: str) -> None:
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "sh", "-c", _HOLD, "sh", name, names],
            stdin=subprocess.PIPE,  # of which it sees the end when this process ends
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.holder.stdout is not None
        if self.holder.stdout.readline() != "ready\n":
            raise OSError(f"host {name} cannot be made: {self.holder.communicate(timeout=_PATIENCE)[1].strip()}")

    def configure(self, *command: str) -> None:
        """Run a command of iproute2 here, and fail with what it says where it fails."""
        prefix = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]
        done = subprocess.run([*prefix, *command], capture_output=True, text=True, timeout=_PATIENCE, check=False)
        if done.returncode:
            raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")

    def processes(self) -> list[int]:
        """Return the processes that run here, without the holder."""
        mine = os.stat(f"/proc/{self.holder.pid}/ns/net").st_ino
        found = []
        for entry in Path("/proc").iterdir():
            try:
                is_mine = entry.name.isdigit() and (entry / "ns/net").stat().st_ino == mine
                is_dead = is_mine and (entry / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            except OSError:  # it has ended
                continue
            if is_mine and not is_dead and int(entry.name) != self.holder.pid:
                found.append(int(entry.name))
        return found

    def clear(self) -> None:
        """Kill what runs here."""
        while left := self.processes():
            for process in left:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.01)

    def close(self) -> None:
        """Kill what runs here, and let go of the namespace."""
        self.clear()
        self.holder.communicate(timeout=_PATIENCE)


class Host:
    """One host: ``name`` is its hostname, ``address`` the one at which the others reach it, and ``interface`` the interface with that."""

    interface = "eth0"

    def __init__(self, number: int, names: Sequence[str], addresses: Sequence[str]) -> None:
        self.number = number
        self.name = names[number]
        self.address = addresses[number]
        hosts = "".join(f"{address} {name}\n" for name, address in zip(names, addresses, strict=True))
        self._namespaces = _Namespaces(self.name, f"127.0.0.1 localhost\n{hosts}")
        self.configure = self._namespaces.configure
        self.processes = self._namespaces.processes
        self._started: list[subprocess.Popen[Any]] = []

    @property
    def holder(self) -> int:
        """A process that is on this host as long as this exists."""
        return self._namespaces.holder.pid

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return what runs *argv* on this host, in the folder and environment in which it is itself run."""
        return [sys.executable, "-I", "-S", str(_ENTER), str(self.holder), *argv]

    def popen(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start *argv* on this host, with the *options* of ``subprocess.Popen``."""
        self._started.append(subprocess.Popen(self.command(argv), **options))
        return self._started[-1]

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        """Run *argv* on this host, with the *options* of ``subprocess.run``."""
        return subprocess.run(self.command(argv), **{"check": False, "timeout": 60.0, **options})

    def clear(self) -> None:
        """Kill what runs here, and see that it has ended."""
        self._namespaces.clear()
        while self._started:
            self._started.pop().wait(_PATIENCE)

    def close(self) -> None:
        """Kill what runs here, and let the kernel remove the host."""
        self.clear()
        self._namespaces.close()

    def assert_empty(self, within: float = 5.0) -> None:
        """Fail unless all processes on this host have ended within so many seconds."""
        until = time.monotonic() + within
        while left := self.processes():
            assert time.monotonic() < until, f"still running on {self.name}: {[_command_of(one) for one in left]}"
            time.sleep(0.02)


class Network:
    """Hosts and the bridge between them; ``hosts`` are in the order of their addresses."""

    def __init__(self, count: int, stack: ExitStack) -> None:
        self._is_whole = True
        names = [f"host{number}" for number in range(count)]
        addresses = [f"10.77.0.{1 + number}" for number in range(count)]
        self._bridge = _Namespaces("bridge", "127.0.0.1 localhost\n")
        stack.callback(self._bridge.close)
        self._bridge.configure("ip", "link", "add", "between", "type", "bridge")
        self._bridge.configure("ip", "link", "set", "between", "up")
        self.hosts = []
        for number in range(count):
            host = Host(number, names, addresses)
            stack.callback(host.close)
            self._connect(host)
            self.hosts.append(host)

    def _connect(self, host: Host) -> None:
        port, interface = self._port_of(host), host.interface
        other_end = ("peer", "name", interface, "netns", str(host.holder))
        self._bridge.configure("ip", "link", "add", port, "type", "veth", *other_end)
        self._bridge.configure("ip", "link", "set", port, "master", "between", "up")
        host.configure("ip", "address", "add", f"{host.address}/24", "dev", interface)
        host.configure("ip", "link", "set", interface, "up")

    @property
    def ssh(self) -> str:
        """What stands in for ssh: given a host's name and a command line, it runs that there."""
        known = [f"{host.name}={host.holder}" for host in self.hosts]
        return shlex.join([sys.executable, "-I", str(_SSH), *known, "--"])

    @staticmethod
    def _port_of(host: Host) -> str:
        return f"port{host.number}"

    def cut(self, host: Host) -> None:
        """Pull the plug of *host*: its interface sees that it has no link any more."""
        self._is_whole = False
        self._bridge.configure("ip", "link", "set", self._port_of(host), "down")

    def blackhole(self, host: Host) -> None:
        """Drop all packets from and to *host* in silence: its interface still has a link."""
        self._is_whole = False
        self._bridge.configure("ip", "link", "set", self._port_of(host), "nomaster")

    def rate(self, host: Host, mbit: int) -> None:
        """Limit what *host* sends, and what it receives, to so many Mbit/s each."""
        self._is_whole = False
        burst = str(max(_SHORTEST_BURST, mbit * 1_000_000 // 8 // 100))
        limit = ("root", "tbf", "rate", f"{mbit}mbit", "burst", burst, "latency", "100ms")
        host.configure("tc", "qdisc", "replace", "dev", host.interface, *limit)
        self._bridge.configure("tc", "qdisc", "replace", "dev", self._port_of(host), *limit)

    def clear(self) -> None:
        """Kill what runs on the hosts, and undo what was cut, dropped or limited."""
        for host in self.hosts:
            host.clear()
        self.heal()

    def heal(self) -> None:
        """Undo what was cut, dropped or limited."""
        if self._is_whole:
            return
        for host in self.hosts:
            port = self._port_of(host)
            self._bridge.configure("ip", "link", "set", port, "master", "between", "up")
            for one, device in ((host.configure, host.interface), (self._bridge.configure, port)):
                one("tc", "qdisc", "replace", "dev", device, "root", "pfifo")
        self._is_whole = True


def _command_of(process: int) -> str:
    try:
        return f"{process} {Path(f'/proc/{process}/cmdline').read_bytes().replace(bytes(1), b' ').decode()}"
    except OSError:
        return f"{process}, which has ended"


@contextmanager
def make_hosts(count: int) -> Iterator[Network]:
    """Make *count* hosts that reach each other. Where that cannot be done the test is skipped, and fails where CI=true is set."""
    need(*_TOOLS)
    if why := what_prevents_hosts():
        skip(f"no hosts can be made of network namespaces: {why}")
    with ExitStack() as stack:
        yield Network(count, stack)


def what_prevents_hosts() -> str:
    """Return why this process, which has the tools, cannot make network namespaces; nothing where it can."""
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "true"], capture_output=True, text=True, check=False
    )
    return re.sub(r"\s+", " ", tried.stderr).strip() if tried.returncode else ""
