"""The packages' files, from the package index."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

from campaigns.ported_packages.listed import Package

PACONVERT = "3.3.1"


def fetch(package: Package, cache: Path) -> Path:
    """Return the folder of *package*'s files, fetched on first use."""
    folder = cache / f"{package.name}-{package.version}"
    if not folder.exists():
        archive = _download(package.name, package.version, cache)
        made = folder.with_name(f"{folder.name}.new")
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(made)
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(made, filter="data")
        made.rename(folder)
    return folder


def _download(name: str, version: str, cache: Path) -> Path:
    """Return the package's wheel, or its source archive where it has none."""
    cache.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(
        f"https://pypi.org/simple/{name}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    with urllib.request.urlopen(request) as answer:
        files = json.load(answer)["files"]
    of_version = [each for each in files if f"-{version}-" in each["filename"] or f"-{version}.tar" in each["filename"]]
    wheels = [each for each in of_version if each["filename"].endswith(".whl")]
    chosen = (wheels or of_version)[0]
    path = cache / str(chosen["filename"])
    urllib.request.urlretrieve(chosen["url"], path)
    return path


def converted(file: Path, cache: Path) -> str | None:
    """Return what PaConvert makes of *file*; None where it makes nothing."""
    out = cache / "converted.py"
    out.unlink(missing_ok=True)
    command = [str(each) for each in (_paconvert(cache), "-i", file, "-o", out, "--log_dir", os.devnull)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out.read_text(encoding="utf-8") if out.exists() else None


def _paconvert(cache: Path) -> Path:
    """Return PaConvert's command, in a virtual environment of its own."""
    folder = cache / f"paconvert-{PACONVERT}"
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", f"paconvert=={PACONVERT}"], check=True)
    return folder / "bin" / "paconvert"
