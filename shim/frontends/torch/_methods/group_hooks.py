"""The methods of ProcessGroup with which a program has something called before and after each of the group's calls.

As long as a group has a hook, a layer stands on its engine; without one, a call costs what it does anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shim.core import groups
from shim.core.callers import Caller
from shim.errors import ShimError
from shim.frontends.torch._calls.arguments import integer_of
from shim.frontends.torch._errors import ArgumentTypeError, torch_function
from shim.frontends.torch._methods.call_hooks import HookedCalls, Hooks, PostHookArgs, PreHookArgs

_REGISTER_PRE = torch_function("ProcessGroup.register_pre_hook")
_REGISTER_POST = torch_function("ProcessGroup.register_post_hook")
_REGISTER_ABORT = torch_function("ProcessGroup.register_abort_hook")
_UNREGISTER_PRE = torch_function("ProcessGroup.unregister_pre_hook")
_UNREGISTER_POST = torch_function("ProcessGroup.unregister_post_hook")
_UNREGISTER_ABORT = torch_function("ProcessGroup.unregister_abort_hook")


class GroupHooks:
    """What a ProcessGroup calls around the calls of this rank; ``core`` is core's group, and has the hooks.

    Hooks are called in the order of their ids. What one raises is raised by the call: by a pre hook instead of the call, of which the
    other ranks are told; by a post hook after it.
    Deviates: the exchanges that objects and new groups are made of are not told to hooks, nor are calls with buffers of Python's own, such as
    bytearray; coalesced calls are told one by one.
    """

    __slots__ = ()
    core: groups.ProcessGroup

    def register_pre_hook(self, hook_id: int, hook: Callable[[PreHookArgs], None]) -> None:
        """Call *hook* before each call, in place of another of *hook_id*. Raises: TypeError for what cannot be called."""
        _register(_REGISTER_PRE, self.core, "pre", hook_id, hook)

    def unregister_pre_hook(self, hook_id: int) -> None:
        """Call the pre hook of *hook_id*, if there is one, no more."""
        _unregister(_UNREGISTER_PRE, self.core, "pre", hook_id)

    def register_post_hook(self, hook_id: int, hook: Callable[[PostHookArgs], None]) -> None:
        """Call *hook* when a call has begun, or ended where it is synchronous, in place of another of *hook_id*."""
        _register(_REGISTER_POST, self.core, "post", hook_id, hook)

    def unregister_post_hook(self, hook_id: int) -> None:
        """Call the post hook of *hook_id*, if there is one, no more."""
        _unregister(_UNREGISTER_POST, self.core, "post", hook_id)

    @property
    def supports_abort_hooks(self) -> bool:
        """Always, as ``register_abort_hook`` says. Deviates: groups of torch's gloo have none."""
        return True

    def register_abort_hook(self, hook_id: int, hook: Callable[[], None]) -> None:
        """Call *hook*, in place of another of *hook_id*, before a call raises an error after which the group cannot be used.

        A rank may learn of one failure several times, by a call and by a work.
        """
        _register(_REGISTER_ABORT, self.core, "abort", hook_id, hook)

    def unregister_abort_hook(self, hook_id: int) -> None:
        """Call the abort hook of *hook_id*, if there is one, no more."""
        _unregister(_UNREGISTER_ABORT, self.core, "abort", hook_id)


def _register(caller: Caller, core: groups.ProcessGroup, table: str, hook_id: Any, hook: Any) -> None:
    number = integer_of(caller, core, "hook_id", hook_id)
    if not callable(hook):
        raise caller.explain(ArgumentTypeError(f"hook must be callable, got {hook!r}"), core)
    try:
        core.engine.is_usable()  # a group that was destroyed says so
    except ShimError as error:
        raise caller.explain(error, core) from None
    hooks = _hooks_of(core)
    if hooks is None:
        hooks = Hooks(core)
        core.put_layer(hooks.layer)
    hooks.tables[table][number] = hook


def _unregister(caller: Caller, core: groups.ProcessGroup, table: str, hook_id: Any) -> None:
    number = integer_of(caller, core, "hook_id", hook_id)
    hooks = _hooks_of(core)
    if hooks is not None:
        hooks.tables[table].pop(number, None)
        if not any(hooks.tables.values()):
            core.take_layer()


def _hooks_of(core: groups.ProcessGroup) -> Hooks | None:
    return core.engine.hooks if isinstance(core.engine, HookedCalls) else None
