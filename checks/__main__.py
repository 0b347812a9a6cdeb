"""Run every check, or those named: ``python -m checks [name ...]``. The exit status is 1 when one has findings.

``python -m checks nightly [job ...]`` runs what takes too long for every change, ``python -m checks whole`` the gate with all its parts.
``record`` records a framework's release, ``versions`` tries ours beside all recorded ones, and ``wheels`` builds a release of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from campaigns import nightly, versions
from checks import (
    deviations,
    exports,
    frameworks,
    frontend_docstrings,
    frontend_functions,
    gate,
    import_time,
    native_includes,
    port_rules,
    port_traps,
    prose,
    recording,
    sizes,
    support,
    tools,
    wheels,
)

Check = Callable[[Path], list[str]]

CHECKS: dict[str, Check] = {
    "ruff-check": tools.ruff_check,
    "ruff-format": tools.ruff_format,
    "mypy": tools.mypy,
    "import-linter": tools.import_linter,
    "clang-format": tools.clang_format,
    "frontend-functions": frontend_functions.check,
    "frontend-docstrings": frontend_docstrings.check,
    "exports": exports.check,
    "import-time": import_time.check,
    "native-includes": native_includes.check,
    "sizes": sizes.check,
    "deviations": deviations.check,
    "support": support.check,
    "frameworks": frameworks.check,
    "port-rules": port_rules.check,
    "port-traps": port_traps.check,
    "prose": prose.check,
}


def main(names: list[str]) -> int:
    """Run the checks called *names*, or all, print a line for each, and return the exit status."""
    if names[:1] == ["nightly"]:
        return nightly.main(names[1:])
    if names[:1] == ["record"]:
        return recording.main(names[1:])
    if names[:1] == ["versions"]:
        return versions.main(names[1:])
    if names[:1] == ["wheels"]:
        return wheels.main(names[1:])
    if names == ["whole"]:
        return gate.run_whole()
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        print(f"no check is called {', '.join(unknown)}; there are {', '.join(CHECKS)}")
        return 2
    root = Path(__file__).resolve().parent.parent
    failed = 0
    for name in names or CHECKS:
        findings = CHECKS[name](root)
        print(f"{name:20} {'ok' if not findings else f'{len(findings)} finding(s)'}", flush=True)
        for finding in findings:
            print(f"    {finding}")
        failed += bool(findings)
    print(f"{failed} check(s) failed" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
