from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.mutants.listed import MUTANTS
from campaigns.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mistake_can_be_made(mutant: Mutant) -> None:
    assert mutant.why_it_does_not_fit(ROOT) == ""


def test_no_name_is_given_twice() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_mistake_is_there_within_the_block_alone(tmp_path: Path) -> None:
    mutant = Mutant("a/name", "product.py", "1 + 1", "1 - 1", ())
    file = tmp_path / "product.py"
    file.write_text("x = 1 + 1\n")

    def end_within() -> None:
        with mutant.made(tmp_path):
            assert file.read_text() == "x = 1 - 1\n"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        end_within()
    assert file.read_text() == "x = 1 + 1\n"


@pytest.mark.parametrize("text", ["x = 2\n", "1 + 1\n1 + 1\n", None])
def test_what_does_not_fit_is_told(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "product.py").write_text(text)
    assert "product.py" in Mutant("a/name", "product.py", "1 + 1", "1 - 1", ()).why_it_does_not_fit(tmp_path)
