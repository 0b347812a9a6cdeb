"""Views that show something in place of what the frontends have, as the conformance runner asks for."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

import shim.frontends.torch.distributed as ours
from shim.substitution.imports import scoped_builtins
from shim.substitution.views import ModuleView

PROGRAM = """
import torch
import torch.distributed as dist
from torch.distributed import all_reduce
from torch.distributed.nn import functional
"""


def names_after(program: str, built: dict[str, Any]) -> dict[str, Any]:
    names: dict[str, Any] = {"__builtins__": built}
    exec(program, names)
    return names


def test_what_is_the_frontend_s_is_shown_as_it_is_given() -> None:
    names = names_after(PROGRAM, scoped_builtins(lambda thing: ("instead", thing)))
    assert names["all_reduce"] == names["dist"].all_reduce == ("instead", ours.all_reduce)
    assert names["torch"].distributed.broadcast == ("instead", ours.broadcast)
    assert names["functional"].all_gather == ("instead", ours.nn.functional.all_gather)
    assert names["torch"].Tensor is torch.Tensor


def test_other_views_show_what_they_did() -> None:
    names_after(PROGRAM, scoped_builtins(lambda thing: None))
    assert names_after(PROGRAM, scoped_builtins())["dist"].all_reduce is ours.all_reduce


def test_a_module_that_only_the_frontend_has_is_seen_through() -> None:
    frontend, inner = ModuleType("shim.frontends.made_up"), ModuleType("shim.frontends.made_up.stream")
    vars(inner).update(__all__=["send"], send="ours", other="not public")
    vars(frontend).update(__all__=["stream"], stream=inner)
    view = ModuleView(ModuleType("made_up"), frontend, lambda thing: ("instead", thing))
    assert view.stream.send == ("instead", "ours")
    assert ModuleView(ModuleType("made_up"), frontend).stream is inner
