"""A mutant: the product with one mistake."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """The product where *after* stands in place of *before*, which occurs once in *file*; *tests* are those that should fail."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]  # files or folders, as pytest takes them

    @property
    def is_native(self) -> bool:
        """Whether the engine has to be built anew."""
        return self.file.startswith("native/")

    def why_it_does_not_fit(self, root: Path) -> str:
        """Return why the mistake cannot be made in the product at *root*, or nothing."""
        if not (root / self.file).is_file():
            return f"there is no {self.file}"
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.before) != 1:
            return f"{self.file} has the text {text.count(self.before)} times"
        if self.file.endswith(".py"):
            try:
                ast.parse(text.replace(self.before, self.after))
            except SyntaxError as error:
                return f"{self.file} is no Python then: {error}"
        missing = [test for test in self.tests if not (root / test).exists()]
        return f"there is no {missing[0]}" if missing else ""

    @contextmanager
    def made(self, root: Path) -> Iterator[None]:
        """Have the mistake in the product at *root* within the block."""
        file = root / self.file
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(self.before, self.after), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(text, encoding="utf-8")
