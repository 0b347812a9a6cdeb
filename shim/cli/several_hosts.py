"""The options of ``shim run`` for several hosts, and what follows from them for this one."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from shim.launch.identity import MOST_RANKS, Share, free_addresses, free_ports, new_job_key
from shim.launch.orders import Channel
from shim.launch.remote_hosts import Plan

_PANEL = "Several hosts"
_SHORTEST_SECRET = 16  # characters; as shim.core.job asks for
_MAKE_SECRET = "export SHIM_SECRET=$(openssl rand -hex 16)"
_OF_ONE_RANK = frozenset(("SHIM_RANK", "SHIM_WORLD_SIZE", "SHIM_JOB", "SHIM_ENDPOINTS"))
_ALSO_PASSED = ("PYTHONPATH", "VIRTUAL_ENV")

SSH = "ssh -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=3"

Nnodes = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="The number of hosts. Run the same command on each, with the same SHIM_SECRET.",
        rich_help_panel=_PANEL,
    ),
]
NodeRank = Annotated[
    int | None,
    typer.Option(min=0, metavar="K", help="Which of the --nnodes hosts this is, from 0 on.", rich_help_panel=_PANEL),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Where the ranks meet: host 0, as the others reach it, and a port that is free there. "
        "With --hosts the first host and a free port, unless you give others.",
        rich_help_panel=_PANEL,
    ),
]
Hosts = Annotated[
    str | None,
    typer.Option(
        metavar="HOST,...",
        help="Start the ranks on these hosts over ssh: in this folder, with this Python. HOST:SLOTS has SLOTS ranks instead of N.",
        rich_help_panel=_PANEL,
    ),
]
Ssh = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="The program for --hosts; it is given a host and a command line.",
        rich_help_panel=_PANEL,
    ),
]
Attached = Annotated[bool, typer.Option("--attached", hidden=True, help="What --hosts starts: orders come on stdin.")]


@dataclass(frozen=True)
class Place:
    """This host's part of a job: its *share* of the ranks, the job's name (*run*), the *endpoints* of all ranks where they are known, what the
    ranks' *environment* has besides this process's, and the *channel* on which orders come, if any."""

    share: Share
    run: str
    endpoints: Sequence[str]
    environment: Mapping[str, str]
    channel: Channel | None = None


@dataclass(frozen=True)
class Options:
    """The options as they were given; *ranks* are those of a host."""

    ranks: int
    nnodes: int
    node_rank: int | None
    master: str | None
    hosts: str | None
    ssh: Sequence[str]
    attached: bool

    def check(self, max_restarts: int) -> None:
        """Raise BadParameter for options that do not go together."""
        if self.hosts is not None and (self.nnodes > 1 or self.node_rank is not None):
            raise typer.BadParameter("--hosts starts all hosts; --nnodes and --node-rank are for starting each by hand")
        if self.hosts is not None and not self.ssh:
            raise typer.BadParameter("--ssh must be a command, got an empty one")
        if (self.hosts is not None or self.nnodes > 1) and max_restarts:
            raise typer.BadParameter(
                "--max-restarts works on one host only; --replace starts the ranks again that failed, on any number of hosts"
            )
        if self.hosts is not None or self.attached:
            return
        if self.nnodes > 1 and (self.node_rank is None or self.master is None):
            raise typer.BadParameter("--nnodes needs --node-rank, another on each host, and --master, the same on all")
        if self.nnodes == 1 and self.master is not None:
            raise typer.BadParameter("--master needs --nnodes or --hosts")
        if (self.node_rank or 0) >= self.nnodes:
            raise typer.BadParameter(
                f"--node-rank must be in 0..{self.nnodes - 1} with --nnodes {self.nnodes}, got {self.node_rank}"
            )

    def plan(self, arguments: Sequence[str], environment: Mapping[str, str], keep_going: bool) -> Plan:
        """Return what --hosts asks for: `shim run` with *arguments* on each host, and *environment* for the ranks."""
        names, counts = _named_hosts(self.hosts or "", self.ranks)
        address = self._address_of_hosts(names)
        passed = {
            name: value
            for name, value in os.environ.items()
            if (name.startswith("SHIM_") or name in _ALSO_PASSED) and name not in _OF_ONE_RANK
        }
        passed = {"SHIM_SECRET": secrets.token_hex(16)} | passed | dict(environment)
        _check_secret(passed["SHIM_SECRET"])
        return Plan(names, counts, self.ssh, arguments, address, passed, keep_going)

    def _address_of_hosts(self, names: Sequence[str]) -> str:
        """Return where ranks on the hosts *names* meet, with port 0 for a free one."""
        first = names[0].rpartition("@")[2]
        if self.master is None and len(names) > 1 and first in ("localhost", "127.0.0.1", "::1"):
            raise typer.BadParameter(
                f"the other hosts cannot reach the first one as {first!r}; name it as they do, or give --master"
            )
        if self.master is None or not re.search(r"[^:]:\d+$|\]:\d+$", self.master):
            host = self.master or first
            return f"[{host}]:0" if ":" in host and not host.startswith("[") else f"{host}:0"
        return "{}:{}".format(*_checked_address(self.master))

    def place(self, environment: Mapping[str, str]) -> Place:
        """Return this host's part of the job. With --attached that is told by whoever started this process."""
        if self.attached:
            return self._place_told(environment)
        if self.nnodes > 1:
            return self._place_by_hand(environment)
        master, *endpoints = free_addresses(1 + self.ranks)
        host, _, port = master.partition(":")
        met = {"MASTER_ADDR": host, "MASTER_PORT": port} | dict(environment)
        return Place(Share.all_of(self.ranks), new_job_key(), endpoints, met)

    def _place_told(self, environment: Mapping[str, str]) -> Place:
        channel = Channel()
        channel.say(ports=free_ports(1 + self.ranks))
        orders = channel.wait_for_orders()
        host, _, port = orders.address.rpartition(":")
        told = {**environment, **orders.environment, "MASTER_ADDR": host.strip("[]"), "MASTER_PORT": port}
        share = Share.of_host(self.node_rank or 0, orders.counts)
        return Place(share, orders.run, orders.endpoints, told, channel)

    def _place_by_hand(self, environment: Mapping[str, str]) -> Place:
        secret = environment.get("SHIM_SECRET") or os.environ.get("SHIM_SECRET") or ""
        _check_secret(secret)
        host, port = _checked_address(self.master or "")
        met = {**environment, "MASTER_ADDR": host.strip("[]"), "MASTER_PORT": port}
        run = hmac.new(secret.encode(), f"port {port}".encode(), hashlib.sha256).hexdigest()[
            :32
        ]  # the same on all hosts
        return Place(Share.of_host(self.node_rank or 0, [self.ranks] * self.nnodes), run, [], met)


def _check_secret(secret: str) -> None:
    if not secret:
        raise typer.BadParameter(
            f"ranks of several hosts need a secret: `{_MAKE_SECRET}`, and the same value on every host"
        )
    if len(secret) < _SHORTEST_SECRET:
        raise typer.BadParameter(
            f"SHIM_SECRET must have at least {_SHORTEST_SECRET} characters, got {len(secret)}: `{_MAKE_SECRET}`"
        )


def _checked_address(text: str) -> tuple[str, str]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise typer.BadParameter(f"--master must be HOST:PORT with a port of 1 to 65535, got {text!r}")
    return host, port


def _named_hosts(text: str, ranks: int) -> tuple[list[str], list[int]]:
    """Return the hosts that *text* names, and how many ranks each has, *ranks* where it does not say."""
    names, counts = [], []
    for one in text.split(","):
        found = re.fullmatch(r"\s*([^\s:\[\]]+|(?:[^\s\[\]]+@)?\[[^\]\s]+\])(?::(\d+))?\s*", one)
        if found is None or found[1].startswith("-"):
            raise typer.BadParameter(f"--hosts must be HOST,... or HOST:SLOTS,..., got {one!r} in {text!r}")
        names.append(re.sub(r"[\[\]]", "", found[1]))
        counts.append(ranks if found[2] is None else int(found[2]))
        if not 1 <= counts[-1] <= MOST_RANKS:
            raise typer.BadParameter(f"--hosts must give 1 to {MOST_RANKS} ranks to a host, got {one!r}")
    if sum(counts) > MOST_RANKS:
        raise typer.BadParameter(f"--hosts must give at most {MOST_RANKS} ranks in all, got {sum(counts)}")
    if len(set(names)) < len(names):
        raise typer.BadParameter(f"--hosts names a host twice; give it slots instead, as in {names[0]}:{2 * ranks}")
    return names, counts
