"""Mistakes in what substituted programs get for the frameworks' own helpers."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant


def _in(file: str, name: str, before: str, after: str) -> Mutant:
    return Mutant(f"substitution/{name}", f"shim/{file}", before, after, ("tests/substitution/test_questions.py",))


MUTANTS = (
    _in(
        "substitution/questions.py",
        "questions-to-the-framework",
        "    return bool(found) and all(",
        "    return False and all(",
    ),
    _in(
        "frontends/mindspore/_training/parallel_mode.py",
        "mode-of-mindspore",
        '        return get_auto_parallel_context("parallel_mode")\n',
        "        return STAND_ALONE\n",
    ),
    _in(
        "frontends/mindspore/_groups/collective_manager.py",
        "never-initialised",
        "        return group_names.is_initialized()\n",
        "        return False\n",
    ),
    _in(
        "frontends/_paddle/groups/group_views.py",
        "another-registry",
        "        _registry.groups.clear()  # the dict stays, as programs may hold it\n        _registry.groups[_WORLD_ID] = known\n",
        "        _registry.groups = {_WORLD_ID: known}\n",
    ),
    _in(
        "frontends/_paddle/groups/membership.py",
        "no-context",
        '    """Tell whether the world is there."""\n    return is_entered()\n',
        '    """Tell whether the world is there."""\n    return False\n',
    ),
)
