"""The suites that these tests run load the plugin that they are about, and no other one."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
