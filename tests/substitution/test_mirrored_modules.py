"""A module of a frontend stands in with the names in its ``__all__``, so one without it stands in for nothing."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from types import ModuleType

import pytest

import shim.frontends
from shim.record.releases import version_of
from shim.substitution.views import ModuleView

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(shim.frontends.__path__, "shim.frontends.")
    if not any(part.startswith("_") for part in module.name.split(".")) and module.name != "shim.frontends.paddle"
)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_with_names_has_a_list_of_them(name: str) -> None:
    module = importlib.import_module(name)
    ours = [
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", "").startswith("shim.frontends.")
    ]
    assert not ours or module.__all__


@pytest.mark.parametrize(
    ("path", "name"), [("communication.management", "init"), ("ops.operations", "AllReduce"), ("ops", "AllReduce")]
)
def test_older_paths_of_mindspore_stand_in(path: str, name: str) -> None:
    real = ModuleType(f"mindspore.{path}")
    view = ModuleView(real, importlib.import_module(f"shim.frontends.mindspore.{path}"))
    assert getattr(view, name).__module__.startswith("shim.frontends.mindspore.")


def test_the_version_of_paddle_is_that_of_the_package_for_gpus_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package != "paddlepaddle-gpu":
            raise importlib.metadata.PackageNotFoundError(package)
        return "3.1.0+cu126"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert version_of("paddle") == "3.1.0"
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        version_of("torch")
