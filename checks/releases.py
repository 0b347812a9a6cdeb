"""The Python sources of a framework's release, read from its wheel on the package index without downloading the rest of it."""

from __future__ import annotations

import io
import json
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shim.record import order_of
from shim.record.releases import PACKAGES

_INDEX = "https://pypi.org/simple"
_KEPT = Path(__file__).resolve().parent.parent / "build" / "releases"
_TIMEOUT = 60.0  # seconds for one answer of the index
_BLOCK = 1 << 20  # bytes asked for at once
_PARTS = {  # of the framework's package: what its functions for communication are written in
    "torch": ("torch/distributed/", "torch/_C/_distributed_c10d.pyi"),
    "paddle": ("paddle/distributed/",),
    "mindspore": ("mindspore/communication/", "mindspore/mint/distributed/", "mindspore/ops/"),
}


@dataclass(frozen=True)
class Release:
    """A version of a framework. ``str()`` of it names its record: ``torch-2.13.0``."""

    framework: str
    version: str

    def __str__(self) -> str:
        return f"{self.framework}-{self.version}"

    @property
    def order(self) -> tuple[int, ...]:
        return order_of(str(self))[1]


def indexed_release(text: str) -> Release:
    """Return the release called *text*; of ``torch-2.9``, the last one with that number on the index. Raises ValueError."""
    framework, _, version = text.partition("-")
    if framework not in PACKAGES or version.count(".") not in (1, 2):
        raise ValueError(f"{text!r} names no release; write {', '.join(PACKAGES)} and a version, as in torch-2.15.0")
    found = {Release(framework, each) for each in _versions_of(framework)}
    fitting = [each for each in found if each.version == version or each.version.startswith(f"{version}.")]
    if not fitting:
        raise ValueError(f"the index has no {framework} {version}")
    return max(fitting, key=lambda each: each.order)


def sources_of(release: Release) -> Path:
    """Return a folder with the release's Python files of :data:`_PARTS`, got from the index the first time. Raises ValueError."""
    folder = _KEPT / str(release)
    if not folder.is_dir():
        wheels = [each for each in _files_of(release.framework) if _is_wheel_of(release, each["filename"])]
        if not wheels:
            raise ValueError(f"the index has no wheel of {release}")
        smallest = min(wheels, key=lambda each: each.get("size") or 0)
        _unpack(smallest["url"], _PARTS[release.framework], folder)
    return folder


def _versions_of(framework: str) -> set[str]:
    versions = {each["filename"].split("-")[1] for each in _files_of(framework) if each["filename"].endswith(".whl")}
    return {version for version in versions if version.replace(".", "").isdigit()}


def _files_of(framework: str) -> list[dict[str, Any]]:
    asked = urllib.request.Request(
        f"{_INDEX}/{PACKAGES[framework][0]}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    with urllib.request.urlopen(asked, timeout=_TIMEOUT) as answer:
        return list(json.load(answer)["files"])


def _is_wheel_of(release: Release, filename: str) -> bool:
    return filename.startswith(f"{PACKAGES[release.framework][0]}-{release.version}-") and filename.endswith(".whl")


def _unpack(url: str, parts: tuple[str, ...], folder: Path) -> None:
    partly = folder.with_name(f"{folder.name}.partly")
    with zipfile.ZipFile(io.BufferedReader(_FarFile(url), _BLOCK)) as wheel:
        for name in wheel.namelist():
            if name.startswith(parts) and name.endswith((".py", ".pyi")):
                wheel.extract(name, partly)
    partly.rename(folder)


class _FarFile(io.RawIOBase):
    """A file on a server, of which only the parts that are read are transferred."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._at = 0
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=_TIMEOUT) as answer:
            self._size = int(answer.headers["Content-Length"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        asked = urllib.request.Request(self._url, headers={"Range": f"bytes={self._at}-{end - 1}"})
        with urllib.request.urlopen(asked, timeout=_TIMEOUT) as answer:
            if answer.status != 206:  # the whole file
                raise OSError(f"{self._url} cannot be read in parts")
            part = answer.read()
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)
