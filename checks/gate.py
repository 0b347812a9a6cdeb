"""Which parts of the gate a change needs: ``python3 -m checks.gate`` prints them for ``.ci/run``, and ``python3 -m checks whole`` runs all.

``.ci/whole`` names the last commit that passed the whole gate. The table below says for some folders which tests can notice a change there;
any other change needs all tests. So does a repository in which that commit is not found. This module needs nothing but Python and git.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(".ci/whole")
# The engine's own tests under sanitizers; the frameworks' documents, tables and tests; and all tests of Python.
ALL = ("engine", "examples", "tests")
ALWAYS = ("tests/campaigns", "tests/checks", "tests/record", "tests/test_examples.py", "tests/test_readme.py")
# Files and folders that nothing outside such leaves imports, and the tests that can notice a change there, beside those that always run.
LEAVES = {
    ".ci/whole": (),
    "CHANGELOG.md": ("tests/website",),
    "CONTRIBUTING.md": ("tests/website",),
    "README.md": ("tests/website",),
    "SECURITY.md": ("tests/website",),
    ".github/": (),
    "CITATION.cff": (),
    "benchmarks/": ("tests/core",),
    "campaigns/mutants/": (),
    "campaigns/ported_files/": (),
    "campaigns/ported_packages/": (),
    "campaigns/questions/": ("tests/substitution",),
    "campaigns/real_programs/": (),
    "campaigns/suites/": (),
    "docs/": (
        "tests/bench",
        "tests/cli",
        "tests/conformance",
        "tests/frontends",
        "tests/notebook",
        "tests/port",
        "tests/test_tasks.py",
        "tests/website",
    ),
    "examples/": ("tests/cli", "tests/conformance", "tests/notebook", "tests/substitution", "tests/website"),
    "mkdocs.yml": ("tests/website",),
    "shim/bench/": ("tests/bench", "tests/cli", "tests/gpu"),
    "shim/notebook/": ("tests/notebook",),
    "shim/port/": ("tests/cli", "tests/port", "tests/test_tasks.py", "tests/website"),
    "shim/rehearsal/": ("tests/rehearsal",),
    "shim/trace/": (
        "tests/cli",
        "tests/core",
        "tests/frontends",
        "tests/port",
        "tests/rehearsal",
        "tests/test_tasks.py",
        "tests/trace",
    ),
    "tests/fault_matrix/": (),  # which a nightly job runs
    "tests/gpu/": ("tests/core",),
    "website/": ("tests/website",),
}
_OURS = ("campaigns/", "checks/", "shim/", "shim_torch_autoload/", "tests/")  # which the engine's own tests do not need


def selected(changed: Iterable[str]) -> tuple[str, ...]:
    """Return the parts of the gate that the paths in *changed* need: of ``ALL``, or folders and files of tests in place of all tests."""
    parts: set[str] = set()
    tests: set[str] = set()
    for path in changed:
        leaf = next((leaf for leaf in LEAVES if path.startswith(leaf)), None)
        folders = Path(path).parts
        if leaf is not None:
            tests.update(LEAVES[leaf])
        elif folders[0] == "tests" and folders[-1].startswith("test_"):  # another folder does not import it
            tests.add("/".join(folders[:2]))
        else:
            parts.update(("examples", "tests") if path.startswith(_OURS) else ALL)
    if "tests" not in parts:
        return (*(part for part in ALL if part in parts), *ALWAYS, *sorted(tests - set(ALWAYS)))
    return tuple(part for part in ALL if part in parts)


def _changed() -> list[str] | None:
    """Return the paths that differ from the commit on record, None where that is not known."""
    try:
        commit = (_ROOT / RECORD).read_text().strip()
        _git("merge-base", "--is-ancestor", commit, "HEAD")
        files = _git("diff", "--name-only", "--no-renames", commit)
        return [*files, *_git("ls-files", "--others", "--exclude-standard")]
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> list[str]:
    ended = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


def run_whole() -> int:
    """Run the gate with all parts, and record the commit if it passes. Returns the exit status."""
    before = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    if before[1]:
        print("what passes is recorded as a commit: commit your changes first", file=sys.stderr)
        return 2
    ended = subprocess.run(["bash", ".ci/run"], cwd=_ROOT, env={**os.environ, "SHIM_GATE": "whole"}, check=False)
    if ended.returncode == 0 and (_git("rev-parse", "HEAD"), _git("status", "--porcelain")) != before:
        print("it passed, but the tree has changed meanwhile: nothing is recorded", file=sys.stderr)
        return 1
    if ended.returncode == 0:
        (_ROOT / RECORD).write_text(before[0][0] + "\n")
        print(f"{before[0][0]} has passed everything; commit {RECORD}")
    return ended.returncode


def _parts() -> tuple[str, ...]:
    changed = None if os.environ.get("SHIM_GATE") == "whole" else _changed()
    if changed is None:
        return ALL
    return tuple(part for part in selected(changed) if part in ALL or (_ROOT / part).exists())


if __name__ == "__main__":
    print(*_parts())
