"""What git says of a folder's files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

__all__ = ["files_in_repository"]

_DEADLINE = 60  # seconds
# A repository's own settings may name programs to be run; listing files must run none of them.
_GIT = ("git", "-c", "core.fsmonitor=false", "--no-optional-locks")


def files_in_repository(folder: Path) -> list[str] | None:
    """Return the files below *folder*, relative to it, but for those that git ignores.

    None: there is no repository or no git, or *folder* itself is ignored, so that git knows nothing of it.
    """
    listed = _ask(folder, "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z")
    if listed is None:
        return None
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    return None if not names and _ask(folder, "check-ignore", "--quiet", ".") is not None else names


def _ask(folder: Path, *arguments: str) -> bytes | None:
    """Return what git prints, None where it ends with another status than 0."""
    own = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    }  # those of a hook mean another repository
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(folder), *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=own, check=False, timeout=_DEADLINE
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
