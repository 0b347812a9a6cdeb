"""The reports of a port: each has every entry, and reads as what it claims to be."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from shim.port.plan import Entry, FileResult, Finding, Plan, Problem, Result
from shim.port.reports.as_json import VERSION, as_json
from shim.port.reports.markdown import as_markdown
from shim.port.reports.sarif import as_sarif
from shim.port.reports.terminal import diff_of, print_diff, print_entries, print_summary

LEFT = Entry(3, 5, "left", "no-equivalent", "there is no `x` | y", "use <b>z</b>\nor w")
CHANGED = Entry(7, 1, "changed", "other-meaning", "the order differs", "look at it")


def file(name: str, before: str, after: str, *findings: Finding, problem: Problem | None = None) -> FileResult:
    path = Path.cwd() / name
    return FileResult(
        Path(name), path, before.encode(), after.encode(), "utf-8", int(before != after), findings, problem
    )


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(tmp_path)
    files = [
        file("a b.py", "x = 1\ny = 2\n\t a | b\f", "x = 2\ny = 2\n\t a | b\f", Finding(3, LEFT), Finding(7, CHANGED)),
        file("n.ipynb", "{}", "{}", Finding(40, LEFT, cell=4)),
        file("old.py", "print 1", "print 1", problem=Problem("it is not Python 3", "port it by hand")),
    ]
    return Result(Plan("torch", "mindspore"), files, 20)


def test_json_has_everything_and_a_version(result: Result) -> None:
    read = json.loads(as_json(result, written=True))
    entry = {
        "line": 3, "column": 5, "kind": "left", "rule": "no-equivalent", "why": LEFT.why, "advice": LEFT.advice, "cell": None, "file_line": 3, "code": "a | b",
    }  # fmt: skip
    assert read.pop("files") == [
        {
            "path": "a b.py", "is_changed": True, "places": 1, "problem": None,
            "entries": [
                entry,
                entry | {"line": 7, "column": 1, "kind": "changed", "rule": "other-meaning", "why": CHANGED.why, "advice": CHANGED.advice, "file_line": 7, "code": ""},
            ],
        },
        {"path": "n.ipynb", "is_changed": False, "places": 0, "problem": None, "entries": [entry | {"cell": 4, "file_line": 40, "code": ""}]},
        {
            "path": "old.py", "is_changed": False, "places": 0, "entries": [],
            "problem": {"why": "it is not Python 3", "advice": "port it by hand"},
        },
    ]  # fmt: skip
    assert read == {
        "version": VERSION,
        "plan": {"source": "torch", "target": "mindspore", "onto": "shim", "scope": "collectives"},
        "written": True,
        "verify": None,
        "summary": {"searched": 20, "files": 1, "places": 1, "left": 2, "changed": 1, "not_ported": 1},
    }


def test_apis_have_the_names_of_the_command_line(result: Result) -> None:
    other = Result(Plan("paddle_2", "paddle_3"), [], 0)
    assert (
        json.loads(as_json(other, False))["plan"]["source"],
        json.loads(as_json(other, False))["plan"]["target"],
    ) == ("paddle-2", "paddle-3")
    assert "from paddle-2 to paddle-3" in as_markdown(other, False)


# What the SARIF 2.1.0 schema requires of each object that we write, and the members that it allows there (of many).
REQUIRED: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"results", "columnKind", "originalUriBaseIds", "properties"}),
    "tool": ({"driver"}, set()),
    "driver": ({"name"}, {"version", "semanticVersion", "rules"}),
    "rule": ({"id"}, {"shortDescription", "help", "defaultConfiguration"}),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations"}),
    "location": (set(), {"physicalLocation"}),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
    "artifactLocation": (set(), {"uri", "uriBaseId"}),
    "region": (set(), {"startLine", "startColumn"}),
    "message": ({"text"}, {"markdown"}),
}


def assert_valid(kind: str, content: dict[str, Any]) -> None:
    required, allowed = REQUIRED[kind]
    assert required <= set(content) <= required | allowed, kind


def test_sarif_has_what_its_schema_requires(result: Result) -> None:
    log = json.loads(as_sarif(result, written=False))
    assert_valid("log", log)
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    assert_valid("run", run)
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert_valid("tool", run["tool"])
    driver = run["tool"]["driver"]
    assert_valid("driver", driver)
    for rule in driver["rules"]:
        assert_valid("rule", rule)
        assert_valid("message", rule["shortDescription"])
        assert_valid("message", rule["help"])
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    assert [rule["id"] for rule in driver["rules"] if rule["help"].get("markdown")] == ["no-equivalent", "not-ported"]
    assert len(run["results"]) == 4
    for each in run["results"]:
        assert_valid("result", each)
        assert_valid("message", each["message"])
        assert each["level"] in ("none", "note", "warning", "error")
        assert driver["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
        [location] = each["locations"]
        assert_valid("location", location)
        place = location["physicalLocation"]
        assert_valid("physicalLocation", place)
        assert_valid("artifactLocation", place["artifactLocation"])
        assert_valid("region", place["region"])
        assert all(value >= 1 for value in place["region"].values())
        base = place["artifactLocation"]["uriBaseId"]
        assert run["originalUriBaseIds"][base]["uri"].endswith("/")


def test_sarif_points_at_the_places(result: Result) -> None:
    [run] = json.loads(as_sarif(result, written=False))["runs"]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [
        ("no-equivalent", "warning"), ("other-meaning", "note"), ("no-equivalent", "warning"), ("not-ported", "error")
    ]  # fmt: skip
    assert [(place["artifactLocation"]["uri"], place["region"]) for place in places] == [
        ("a%20b.py", {"startLine": 3, "startColumn": 5}),
        ("a%20b.py", {"startLine": 7, "startColumn": 1}),
        ("n.ipynb", {"startLine": 40}),
        ("old.py", {"startLine": 1}),
    ]
    assert "Cell 4, line 3" in run["results"][2]["message"]["text"]


def test_a_file_elsewhere_has_its_whole_address_in_sarif(result: Result, tmp_path: Path) -> None:
    elsewhere = FileResult(tmp_path.parent / "x.py", tmp_path, findings=(Finding(3, LEFT),))
    [run] = json.loads(as_sarif(Result(result.plan, [elsewhere], 1), written=False))["runs"]
    [each] = run["results"]
    assert each["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": (tmp_path.parent / "x.py").as_uri()}


def test_markdown_is_tables_whose_cells_cannot_break_them(result: Result) -> None:
    page = as_markdown(result, written=False)
    assert page.startswith("# Port from torch to mindspore")
    assert r"| `a b.py` 3:5 | there is no \`x\` \| y | use \<b\>z\</b\> or w | `no-equivalent` |" in page
    assert "| `n.ipynb` cell 4, 3:5 |" in page
    assert "| `old.py` | it is not Python 3 | port it by hand |" in page
    for table in page.split("\n\n"):
        rows = [line for line in table.split("\n") if line.startswith("|")]
        assert len({row.replace(r"\|", "").count("|") for row in rows}) <= 1


def printed(result: Result, **settings: Any) -> str:
    console = Console(file=io.StringIO(), width=200, highlight=False, **settings)
    print_diff(result, console)
    print_entries(result, console)
    print_summary(result, console, written=False)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_terminal_shows_changes_entries_and_a_summary(result: Result) -> None:
    text = printed(result)
    for expected in (
        "--- a/a b.py",
        "-x = 1\n+x = 2\n",
        "a b.py\n  3:5  left: there is no `x` | y [no-equivalent]\n      use <b>z</b>\n",
        "  7:1  changed: the order differs [other-meaning]\n      look at it\n",
        "n.ipynb\n  cell 4, 3:5  left:",
        "old.py\n  not ported: it is not Python 3\n      port it by hand\n",
        "1 file would change, 1 place ported, 2 places left to you, 1 place to look at, 1 file not ported; 20 files searched.",
    ):
        assert expected in text
    assert "\x1b" not in text


def test_the_same_advice_is_given_once_for_places_in_a_row(result: Result) -> None:
    places = [
        Finding(line, Entry(line, 1, "left", "r", f"why {line}", "advice" if line < 9 else "other"))
        for line in (7, 8, 9)
    ]
    text = printed(Result(result.plan, [file("x.py", "", "", *places)], 1))
    assert "  7:1  left: why 7 [r]\n  8:1  left: why 8 [r]\n      advice\n  9:1  left: why 9 [r]\n      other\n" in text


def test_a_terminal_has_colours_and_no_file_steers_it(result: Result) -> None:
    steering = file("x.py", "a\r\n", "\x1b[2J\r\n")
    text = printed(Result(result.plan, [steering], 1), force_terminal=True, color_system="standard")
    assert "\x1b[32m+\\x1b[2J\x1b[0m" in text
    assert "\r" not in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\n", b"a\nc\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"a\nb", b"a\nc"),
        (b"a\nb", b"a\nb\n"),
        (b"a\n\x0cb\xff\n", b"x\n\x0cb\xff\n"),
        (b"a\rb\n", b"c\rb\n"),
    ],
)
@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(["git", "apply"], marks=pytest.mark.programs("git")),
        pytest.param(["patch", "-p1", "--binary"], marks=pytest.mark.programs("patch")),
    ],
)
def test_a_diff_is_a_patch_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes, after: bytes, tool: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").write_bytes(before)
    diff = diff_of(FileResult(Path("x.py"), tmp_path / "x.py", before, after))
    subprocess.run(tool, input=diff, check=True, capture_output=True)
    assert (tmp_path / "x.py").read_bytes() == after
