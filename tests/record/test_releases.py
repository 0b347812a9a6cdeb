"""Which release of its framework a frontend follows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shim.errors import ArgumentError
from shim.record import FRONTENDS, releases
from shim.record.releases import followed_by

TORCH, PADDLE_2, PADDLE_3 = "shim.frontends.torch", "shim.frontends.paddle_2", "shim.frontends.paddle_3"


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SHIM_API", raising=False)
    for framework in ("torch", "paddle", "mindspore"):
        monkeypatch.delitem(sys.modules, framework, raising=False)
    followed_by.cache_clear()
    yield
    followed_by.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    monkeypatch.setattr(releases, "version_there", lambda framework: versions.get(framework, ""))


@pytest.mark.parametrize(
    ("frontend", "installed", "followed", "why"),
    [
        (TORCH, {"torch": "2.13.0"}, "torch-2.13.0", "as installed"),
        (TORCH, {"torch": "2.12.0"}, "torch-2.12.1", "as installed"),
        (TORCH, {"torch": "2.99.1"}, FRONTENDS[TORCH], "the newest recorded before torch-2.99.1, which is installed"),
        (TORCH, {"torch": "2.10.0a0+git1"}, "torch-2.10.0", "as installed"),
        (TORCH, {}, FRONTENDS[TORCH], "the newest recorded, as torch is not installed"),
        (PADDLE_3, {"paddle": "3.0.0"}, "paddle-3.0.0", "as installed"),
        (PADDLE_2, {"paddle": "3.0.0"}, "paddle-2.6.2", "the newest recorded, as paddle-3.0.0 is installed"),
    ],
)
def test_the_installed_release_is_followed(
    monkeypatch: pytest.MonkeyPatch, frontend: str, installed: dict[str, str], followed: str, why: str
) -> None:
    install(monkeypatch, installed)
    assert followed_by(frontend) == (followed, why)


def test_an_older_one_than_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"torch": "1.13.1"})
    with pytest.warns(UserWarning, match=r"torch-1.13.1 is installed; the oldest release that .* follows is torch-2"):
        assert followed_by(TORCH).why == "the oldest recorded; torch-1.13.1 is installed"


def test_the_release_that_is_asked_for_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"torch": "2.13.0", "paddle": "3.3.1"})
    monkeypatch.setenv("SHIM_API", "torch-2.11, paddle-3.0.0")
    assert followed_by(TORCH) == ("torch-2.11.0", "as SHIM_API says")
    assert followed_by(PADDLE_3) == ("paddle-3.0.0", "as SHIM_API says")
    assert followed_by(PADDLE_2).record == "paddle-2.6.2"


@pytest.mark.frameworks
@pytest.mark.parametrize("framework", ["torch", "paddle", "mindspore"])
def test_the_installed_version_is_that_of_the_package(framework: str) -> None:
    assert releases.version_there(framework) == releases.version_of(framework)


def test_a_folder_with_a_frameworks_name_is_no_installed_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert followed_by(TORCH) == (FRONTENDS[TORCH], "the newest recorded, as torch is not installed")


@pytest.mark.parametrize(
    "asked", ["torch-2.1", "torch-2.12,torch-2.13", "torch", "2.13", "jax-0.10", "torch-2.13.0;paddle-3.0"]
)
def test_what_is_no_release_is_refused(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("SHIM_API", asked)
    with pytest.raises(ArgumentError, match="SHIM_API asks for"):
        followed_by(TORCH)
