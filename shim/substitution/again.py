"""What a spawned process runs in place of its parent's program: the same, with views, as ``__mp_main__``."""

from __future__ import annotations

from shim.substitution.children import of_parent
from shim.substitution.program import run_again

if __name__ == "__mp_main__":
    globals().update(run_again(of_parent(), __name__))
