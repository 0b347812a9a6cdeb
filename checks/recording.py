"""Record a framework's release: ``python -m checks record torch-2.9`` writes its file in shim/record/ from the sources on the package index.

Nothing is installed. A *pattern*, the next newer record or the newest, says which modules and names are recorded; to these come the
public names that its own sources lack. Classes in C++ have stubs in the sources, which say less than the docstrings that the pattern may be
made of: what reads the same in the sources of both releases is taken as the pattern has it.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import griffe

from checks.releases import Release, indexed_release, sources_of
from shim.frontends._absent import is_listed_as_absent
from shim.record import FRONTENDS, Record, Signatures, read, recorded_versions
from shim.record.changes import changes_between
from shim.record.releases import stands_for

_FOLDER = Path(__file__).resolve().parent.parent / "shim" / "record"


def main(arguments: Sequence[str]) -> int:
    """Record the releases that *arguments* name, print what changed from the pattern to each, and return the exit status."""
    parser = argparse.ArgumentParser("python -m checks record", description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "releases", nargs="+", metavar="RELEASE", help="such as torch-2.15.0; torch-2.15 is its last one"
    )
    parser.add_argument("--pattern", help="the record to follow; default: the next newer one, or the newest")
    given = parser.parse_args(arguments)
    logging.getLogger("griffe").setLevel(logging.CRITICAL)  # it tells of whatever the sources leave out
    for text in given.releases:
        try:
            release = indexed_release(text)
            pattern = indexed_release(given.pattern) if given.pattern else _nearest_to(release)
            made = record_of(release, pattern)
        except (OSError, ValueError) as error:
            print(error)
            return 2
        (_FOLDER / f"{release}.json").write_text(_written(made), encoding="utf-8")
        older, newer = sorted((read(str(pattern)), made), key=lambda each: Release(each.framework, each.version).order)
        print(f"shim/record/{release}.json, after {pattern}; from {older.version} to {newer.version}:")
        for change in changes_between(older, newer):
            print(f"  {change.breaks:10} {change.name}: {change.what}")
    return 0


def record_of(release: Release, pattern: Release) -> Signatures:
    """Return what the sources of *release* offer of what is recorded of *pattern*, and what they have beyond the pattern's sources."""
    recorded = read(str(pattern))
    old, new = _Sources(pattern), _Sources(release)
    modules = {}
    for module, records in recorded.modules.items():
        old_names, new_names = old.names(module), new.names(module)
        is_newer = release.order > pattern.order
        added = {name for name in new_names.keys() - old_names.keys() if new.offers(module, name, is_newer=is_newer)}
        names = dict(_of_names(records, old_names, new_names, added))
        if names:
            modules[module] = names
    return Signatures(release.framework, release.version, recorded.constants, modules)


def _of_names(
    records: Mapping[str, Record], old: Mapping[str, Record], new: Mapping[str, Record], added: Collection[str]
) -> Iterator[tuple[str, Record]]:
    """Give each name that the release has, in order, with what is recorded of it.

    *records* are the pattern's, *old* and *new* what the sources of the two say, and *added* the names of *new* to be recorded as well.
    """
    for name in sorted({*records, *added}):
        was, before, now = records.get(name), old.get(name), new.get(name)
        if now is None and (before is not None or not new):
            continue  # it is gone, or not there yet
        if was is None:
            yield name, new[name]
        elif isinstance(was, Mapping) and isinstance(now, Mapping) and isinstance(before, Mapping):
            members = dict(_of_names(was, before, now, now.keys() - before.keys()))
            yield name, {member: text for member, text in members.items() if isinstance(text, str)}
        elif now is None or now == before or not isinstance(was, str) or was[0] not in "(=" or "arg0" in was:
            yield name, was  # the sources cannot tell better
        else:
            yield name, now


class _AllAreThere(griffe.Extension):
    """Has names count that a module imports for type checkers once more, after it has tried to import them."""

    def on_alias_instance(self, *, alias: griffe.Alias, **_others: object) -> None:
        alias.runtime = True


class _Sources:
    """What a release's sources say of the modules for communication."""

    def __init__(self, release: Release) -> None:
        self._frontend = next(each for each in FRONTENDS if stands_for(each, str(release)))
        self._loader = griffe.GriffeLoader(
            search_paths=[sources_of(release)], allow_inspection=False, extensions=griffe.load_extensions(_AllAreThere)
        )
        self._loader.load(release.framework, try_relative_path=False)
        self._loader.resolve_aliases(implicit=True, external=False)

    def names(self, module: str) -> dict[str, Record]:
        """Return the functions, classes and constants of *module*, what it imports too, as records; none where there is no such module."""
        try:
            found = self._loader.modules_collection[module]
        except KeyError:
            return {}
        records = {}
        for name, member in found.all_members.items():
            meant = _meant_by(member)
            if meant is not None and not meant.is_module:
                records[name] = _record_of(meant)
        return records

    def offers(self, module: str, name: str, *, is_newer: bool) -> bool:
        """Tell whether *module* lists a public *name* that no frontend explains as absent, or, *is_newer* and without a list, defines it."""
        found = self._loader.modules_collection[module]
        if name.startswith("_") or is_listed_as_absent(f"{self._frontend}{module[module.index('.') :]}", name):
            return False
        if found.exports is not None:
            return name in {str(listed) for listed in found.exports}
        return is_newer and (found.is_init_module or not found.all_members[name].is_alias)


def _meant_by(member: griffe.Object | griffe.Alias) -> griffe.Object | None:
    try:
        return member.final_target if isinstance(member, griffe.Alias) else member
    except griffe.GriffeError:  # it is imported from what the sources leave out
        return None


def _record_of(meant: griffe.Object) -> Record:
    if isinstance(meant, griffe.Class):
        members = {name: each[0] for name, each in meant.overloads.items() if each} | meant.all_members
        records = {name: _record_of_member(name, member) for name, member in members.items()}
        return {name: text for name, text in records.items() if text is not None}
    if isinstance(meant, griffe.Function):
        return _signature_of(meant)
    return f"= {meant.value}" if isinstance(meant, griffe.Attribute) else "value"


def _record_of_member(name: str, member: griffe.Object | griffe.Alias) -> str | None:
    meant = _meant_by(member)
    if name.startswith("_") and name != "__init__":
        return None
    if isinstance(meant, griffe.Function):
        return _signature_of(meant, bound="staticmethod" not in meant.labels)
    if isinstance(meant, griffe.Attribute):
        return f"= {meant.value}" if meant.value not in (None, "...") and "property" not in meant.labels else "property"
    return None


def _signature_of(function: griffe.Function, *, bound: bool = False) -> str:
    """Return the text of a function's parameters with their defaults; without the first of what is *bound* to a class or its instance."""
    written: list[str] = []
    parameters = list(function.parameters)[bound:]
    kinds = [parameter.kind for parameter in parameters]
    for index, parameter in enumerate(parameters):
        default = "" if parameter.default is None else f"={parameter.default}"
        if parameter.kind is griffe.ParameterKind.var_positional:
            written.append(f"*{parameter.name}")
        elif parameter.kind is griffe.ParameterKind.var_keyword:
            written.append(f"**{parameter.name}")
        else:
            if parameter.kind is griffe.ParameterKind.keyword_only and not any(each[0] == "*" for each in written):
                written.append("*")
            written.append(f"{parameter.name}{default}")
        if parameter.kind is griffe.ParameterKind.positional_only and parameter.kind not in kinds[index + 1 :]:
            written.append("/")
    return f"({', '.join(written)})"


def _nearest_to(release: Release) -> Release:
    """Return the recorded release of the same framework that comes next after *release*, or the newest one."""
    recorded = [Release(*name.split("-")) for name in recorded_versions() if name.startswith(f"{release.framework}-")]
    newer = [each for each in recorded if each.order > release.order]
    others = newer[:1] or [each for each in recorded if each.order < release.order]
    if not others:
        raise ValueError(f"nothing is recorded of another version of {release.framework}; write --pattern")
    return others[-1]


def _written(signatures: Signatures) -> str:
    """Return *signatures* as the text of their file, a line for each name."""
    whole = asdict(signatures)
    modules = whole.pop("modules")
    head = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in whole.items()]
    parts = []
    for module, names in modules.items():
        lines = ",\n".join(f"      {json.dumps(name)}: {json.dumps(record)}" for name, record in names.items())
        parts.append(f"    {json.dumps(module)}: {{\n{lines}\n    }}")
    head.append('  "modules": {\n' + ",\n".join(parts) + "\n  }")
    return "{\n" + ",\n".join(head) + "\n}\n"
