"""What the processes of other hosts tell of their groups: `shim doctor --json` says it there."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from shim.core.reports.inquiries import GroupFacts, LostRank, ProcessFacts, WaitFacts

_PATIENCE = 30.0  # seconds for ssh, and for Python on the other host


class UnreachableHost(Exception):
    """A host that could not be asked. The text says which, and what its ssh wrote."""


def ask_hosts(hosts: Sequence[str], ssh: Sequence[str], timeout: float) -> list[ProcessFacts]:
    """Ask all processes of this user on *hosts* at once, over *ssh*, waiting up to *timeout* seconds for each.

    Raises UnreachableHost.
    """
    with ThreadPoolExecutor(max_workers=len(hosts)) as asking:
        return [process for found in asking.map(lambda host: _ask(host, ssh, timeout), hosts) for process in found]


def _ask(host: str, ssh: Sequence[str], timeout: float) -> list[ProcessFacts]:
    path = os.environ.get("PYTHONPATH")
    python = [*(["env", f"PYTHONPATH={path}"] if path else []), sys.executable, "-m", "shim", "doctor", "--json"]
    line = f"cd {shlex.quote(os.getcwd())} && exec {shlex.join([*python, '--timeout', str(timeout)])}"
    try:
        done = subprocess.run(
            [*ssh, host, line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout + _PATIENCE,
            check=False,
        )
        said = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise UnreachableHost(f"host {host} did not answer within {timeout + _PATIENCE:g} s") from None
    except OSError as error:
        raise UnreachableHost(f"{ssh[0]} cannot be started: {error.strerror}") from None
    except ValueError:
        raise UnreachableHost(
            f"host {host} could not be asked: {ssh[0]} ended with status {done.returncode}; it wrote:\n{done.stderr.strip()}"
        ) from None
    return [_process(one, host) for one in said]


def _process(said: dict[str, Any], host: str) -> ProcessFacts:
    return ProcessFacts(**said | {"groups": tuple(_group(group) for group in said["groups"]), "host": host})


def _group(said: dict[str, Any]) -> GroupFacts:
    waiting = said["waiting"]
    return GroupFacts(
        **said
        | {
            "ranks": tuple(said["ranks"]),
            "waiting": waiting and WaitFacts(**waiting | {"awaited": tuple(waiting["awaited"])}),
            "gone": tuple(LostRank(**lost) for lost in said["gone"]),
        }
    )
