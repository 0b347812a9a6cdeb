"""The page of the rules that a report's entries name."""

from __future__ import annotations

from pathlib import Path

from checks import port_rules


def test_each_rule_has_a_section_with_its_examples() -> None:
    page = port_rules.render()
    section = page[page.index("## any-source") : page.index("## argument-without-effect")]
    assert "takes a message of any rank.\n" in section
    assert "`--from torch --to paddle-3`" in section
    assert section.index("\ndist.recv(t)\n") < section.index("\ndist.recv(t, src=1)\n")
    assert all(len(line) <= 120 for line in page.splitlines())


def test_another_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / port_rules.PAGE
    finding = ["docs/porting_rules.md:1: is not what the rules say: run python -m checks.port_rules"]
    assert port_rules.check(tmp_path) == finding
    page.parent.mkdir()
    page.write_text(port_rules.render())
    assert port_rules.check(tmp_path) == []
    page.write_text(page.read_text().replace("any rank", "a rank"))
    assert port_rules.check(tmp_path) == finding
