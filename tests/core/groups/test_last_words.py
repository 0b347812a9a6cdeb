"""What a rank notes of the exception that ends its program, and that it leaves hooks and signals as the program has them."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

BEGINNING = """
import os, signal, sys
import shim.frontends.torch.distributed as dist
from shim.core.groups import last_words
def begin(): dist.init_process_group(rank=0, world_size=1)
"""


def run(body: str) -> subprocess.CompletedProcess[str]:
    program = BEGINNING + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("raised", "noted"),
    [
        ("ValueError('too hot')", "<string>:11: ValueError: too hot"),
        ("ValueError('two\\nlines')", "<string>:11: ValueError: two"),
        ("Broken()", "<string>:11: Broken"),
        ("ValueError('\\udc80')", "<string>:11: ValueError: ?"),
    ],
)
def test_the_exception_that_ends_the_program_is_noted(raised: str, noted: str) -> None:
    done = run(f"""
        import atexit
        class Broken(Exception):
            def __str__(self): raise RuntimeError
        begin(); atexit.register(lambda: print(last_words.reason()))
        raise {raised}
    """)
    assert done.stdout == f"{noted}\n", done.stderr


def test_a_note_on_an_exception_is_not_taken_for_it() -> None:
    done = run("""
        import atexit
        begin(); atexit.register(lambda: print(last_words.reason()))
        error = ValueError("too hot"); error.__notes__ = ["some note"]
        raise error
    """)
    assert done.stdout == "<string>:10: ValueError: too hot\n", done.stderr


def test_a_line_of_ours_is_not_the_programs() -> None:
    done = run("""
        import atexit
        begin(); atexit.register(lambda: print(last_words.reason()))
        dist.all_reduce("no tensor")
    """)
    assert done.stdout.startswith("<string>:9: TensorError: torch.distributed.all_reduce:"), done.stdout + done.stderr


def test_hooks_that_call_each_other_are_no_circle() -> None:
    done = run("""
        begin()
        ours = sys.excepthook
        sys.excepthook = lambda *error: (print("theirs"), ours(*error))
        dist.destroy_process_group()
        begin()
        raise ValueError("once")
    """)
    assert done.stdout == "theirs\n"
    assert done.stderr.count("ValueError: once") == 1
    assert "RecursionError" not in done.stderr


def test_a_handler_that_the_program_sets_later_stays() -> None:
    done = run("""
        begin()
        signal.signal(signal.SIGTERM, lambda *_: print("theirs", flush=True))
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        os.wait()
        dist.destroy_process_group()
        os.kill(os.getpid(), signal.SIGTERM)
    """)
    assert done.stdout == "theirs\ntheirs\n"
    assert done.returncode == 0, done.stderr


def test_after_the_end_of_the_world_sigterm_says_nothing() -> None:
    done = run("""
        begin()
        dist.destroy_process_group()
        os.kill(os.getpid(), signal.SIGTERM)
    """)
    assert done.returncode == -15
    assert done.stderr == ""
