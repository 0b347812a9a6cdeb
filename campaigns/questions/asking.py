"""A rank that asks its framework's questions: ``python asking.py FRAMEWORK FOLDER QUESTIONS``, started by a launcher.

It starts the world, makes a group, sets MindSpore's data-parallel mode, and writes the answers of each question to FOLDER. Under ``shim run
--as-installed`` it is the substituted program.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any


def start(framework: str) -> int:
    """Start the world of *framework*, make a group of all ranks beside it, and return this process's rank."""
    world: Any = importlib.import_module(
        f"{framework}.{'communication' if framework == 'mindspore' else 'distributed'}"
    )
    if framework == "torch":
        world.init_process_group("gloo")
        world.new_group([0, 1])
    elif framework == "paddle":
        world.init_parallel_env()
        world.new_group([0, 1])
    else:
        mindspore: Any = importlib.import_module("mindspore")
        mindspore.set_device("CPU")
        world.init("mccl")
        world.create_group("pair", [0, 1])
        mindspore.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    return int(world.get_rank())


def told(value: Any, depth: int = 0) -> Any:
    """Return what of *value* two worlds can have in common: numbers, texts and what is made of them, and the names of other things' classes."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return re.sub(r":\d{4,5}\b", ":PORT", value)
    if isinstance(value, (list, tuple, set, frozenset, dict)) and len(value) > 100:
        return f"<{type(value).__name__} of {len(value)}>"
    if isinstance(value, (list, tuple)) and depth < 4:
        return [told(one, depth + 1) for one in value]
    if isinstance(value, (set, frozenset)) and depth < 4:
        return sorted((told(one, depth + 1) for one in value), key=str)
    if isinstance(value, dict) and depth < 4:
        return {str(told(key, depth + 1)): told(one, depth + 1) for key, one in value.items()}
    return f"<{type(value).__name__}>"


def answer(question: str) -> Any:
    """Return the answer of *question*, or the class of the error that it raises."""
    module, _, name = question.partition(":")
    try:
        return told(getattr(importlib.import_module(module), name)())
    except Exception as error:
        return f"! {type(error).__name__}"


def main(framework: str, folder: str, questions: str) -> None:
    """Write this rank's answers to *questions*, a file, into *folder*: a line of JSON for each."""
    warnings.simplefilter("ignore")
    rank = start(framework)
    with (Path(folder) / f"{rank}.jsonl").open("w") as file, contextlib.redirect_stdout(sys.stderr):
        for question in json.loads(Path(questions).read_text()):
            file.write(json.dumps([question, answer(question)]) + "\n")
            file.flush()
    os._exit(0)  # some answers are objects that end badly


if __name__ == "__main__":
    main(*sys.argv[1:])
