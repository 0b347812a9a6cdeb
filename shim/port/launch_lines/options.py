"""Read what the words after a launcher say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from shim.port.launch_lines.launch import Launch, Word
from shim.port.launch_lines.launchers import Launcher, normal_name
from shim.port.plan import Left, Note

_VARIABLE = re.compile(r".*[$<{].*")
_SCRIPT = re.compile(r"""[^\s"']+\.py|.*[$<{].*""")
_PYTHON = re.compile(r"python[\d.]*")
_QUESTIONS = ("-h", "--help", "--version")
_LOCAL = ("127.0.0.1", "localhost", "::1")
_LOCAL_RANK = Note(
    "launch-local-rank",
    "torch.distributed.launch gave each rank the argument --local-rank, without --use-env",
    "have the program read os.environ['LOCAL_RANK'] instead",
)
_BY_HAND = "start the ranks on each host by hand, or on one host only: shim run -n N"


def read_launch(launcher: Launcher, words: Sequence[Word], in_list: bool = False) -> Launch | None:
    """Return what *words*, which follow *launcher*, say; None where they are no launch line, but the launcher's name in a text.

    *in_list*: they are a list of arguments, in which any expression may be the script. Raises Left for a launch line that is to stay.
    """
    launch = Launch()
    position, local_ranks = 0, ""
    if any(word.text in _QUESTIONS for word in words[:1]):
        return None
    if launcher.name == "mpi" and not any(_PYTHON.fullmatch(word.text or "") for word in words):
        return None  # it starts any program, and this is another one
    while position < len(words) and (words[position].text or "").startswith("-"):
        name, value, position = _option(launcher, launch, words, position)
        meaning = launcher.flags.get(name) or launcher.options[name]
        if meaning == "module":
            launch.is_module = True
            break
        if meaning == "local-ranks":
            local_ranks = value
        else:
            _MEANINGS[meaning](launch, name, value)
    program = _program(launcher, launch, words, position, in_list)
    if program is None:
        if position == 0:
            return None
        raise Left("launch-incomplete", "the program is not in this line", "change the launcher by hand")
    launch.program = program
    launch.ranks = launch.ranks or launcher.default_ranks
    if launcher.name == "mindspore" and (local_ranks or launcher.default_ranks) != launch.ranks:
        raise Left("launch-nodes", "not all ranks are on this host", _BY_HAND)
    if not launch.ranks:
        raise Left("launch-ranks", "the line does not say how many ranks there are", "write shim run -n N by hand")
    return launch


def local_rank_notes(launcher: str, words: Sequence[Word]) -> list[Note]:
    """Return what to tell where *launcher*, as it is written, gives the program an argument that no other launcher gives."""
    is_told = launcher == "torch.distributed.launch" and not any(
        normal_name(word.text or "") == "use-env" for word in words
    )
    return [_LOCAL_RANK] * is_told


def _option(launcher: Launcher, launch: Launch, words: Sequence[Word], position: int) -> tuple[str, str, int]:
    """Return the name and value of the option at *position*, and where the next word is."""
    word = words[position]
    given, equals, value = (word.text or "").partition("=")
    name = normal_name(given)
    if name in launcher.flags and not equals:
        return name, "", position + 1
    if name not in launcher.options:
        raise Left("launch-option", f"{given} has no equivalent", "change the line by hand")
    if equals:
        return name, _value_after_equals(launch, word, value), position + 1
    if position + 1 == len(words):
        raise Left("launch-incomplete", f"the value of {given} is not in this line", "change the launcher by hand")
    if launcher.options[name] == "ranks":
        launch.ranks_are_expression = words[position + 1].text is None
    return name, words[position + 1].source, position + 2


def _value_after_equals(launch: Launch, word: Word, value: str) -> str:
    """Return *value* as it is to be written without the option that it stands in one word with, *word*."""
    quoted = re.fullmatch(r"""([fF]?)(["']).*\2""", word.source, re.DOTALL)
    if quoted is None:
        return word.source.partition("=")[2]
    if not quoted[1]:
        return value
    launch.ranks_are_expression = True
    return f"{quoted[1]}{quoted[2]}{value}{quoted[2]}"


def _program(launcher: Launcher, launch: Launch, words: Sequence[Word], position: int, in_list: bool) -> int | None:
    """Return the number of the word at which the program begins, None where none follows."""
    if launcher.name == "mpi":  # Python itself is named
        if position == len(words) or not _PYTHON.fullmatch(words[position].text or ""):
            return None
        position += 1
        while position < len(words) and words[position].text in ("-u", "-m"):
            launch.is_module |= words[position].text == "-m"
            position += 1
            if launch.is_module:
                break
    if position == len(words):
        return None
    if launch.is_module or (in_list and position > 0 and words[position].text is None):
        return position  # options before it tell that this is no other list with a launcher's name in it
    return position if _SCRIPT.fullmatch(words[position].text or "") else None


def _plain(value: str) -> str:
    return value.strip("\"'")


def _ranks(launch: Launch, name: str, value: str) -> None:
    if not (launch.ranks_are_expression or re.fullmatch(r"\d+|[A-Z_]+", _plain(value)) or _VARIABLE.fullmatch(value)):
        raise Left("launch-ranks", f"{_plain(value)!r} is no number of ranks", "write the number: shim run -n N")
    launch.ranks = value if launch.ranks_are_expression or not _plain(value).isdecimal() else _plain(value)


def _must_be(wanted: Sequence[str]) -> Callable[[Launch, str, str], None]:
    def check(launch: Launch, name: str, value: str) -> None:
        if _plain(value) not in wanted:
            _refuse_nodes(launch, name, value)

    return check


def _refuse_nodes(launch: Launch, name: str, value: str) -> None:
    raise Left("launch-nodes", f"--{name} is for ranks on several hosts", _BY_HAND)


def _refuse_logs(launch: Launch, name: str, value: str) -> None:
    advice = "choose what to write: shim run --log-dir D writes each rank's output to D/rank0.stdout, D/rank0.stderr and so on"
    raise Left("launch-log-folder", f"--{name}: the files of another launcher have other names", advice)


def _restarts(launch: Launch, name: str, value: str) -> None:
    if not (_plain(value).isdecimal() or _VARIABLE.fullmatch(value)):
        raise Left("launch-option", f"--{name} {value} is no number that can be read here", "change the line by hand")
    launch.restarts = _plain(value) if _plain(value).isdecimal() else value


def _variable(launch: Launch, name: str, value: str) -> None:
    if "=" not in value:
        raise Left("launch-option", f"-{name} {value} passes a variable on", "remove it: ranks get all variables")
    launch.variables.append(value)


def _port(launch: Launch, name: str, value: str) -> None:
    why = f"--{name} {_plain(value)} is left out: the launcher chooses a port that is free"
    launch.notes.append(Note("launch-port", why, "nothing, unless the program needs this port"))


def _devices(launch: Launch, name: str, value: str) -> None:
    devices = _plain(value)
    if not re.fullmatch(r"\d+(,\d+)*", devices):
        raise Left(
            "launch-ranks", f"--{name} {devices} does not say how many ranks there are", "write shim run -n N by hand"
        )
    numbers = devices.split(",")
    launch.ranks = str(len(numbers))
    if numbers != [str(number) for number in range(len(numbers))]:
        why = f"--{name} {devices} is left out: the ranks' devices are 0 to {len(numbers) - 1}"
        launch.notes.append(
            Note("launch-devices", why, "set CUDA_VISIBLE_DEVICES, or your device's variable, before the command")
        )


def _nothing(launch: Launch, name: str, value: str) -> None:
    """The launcher of the port does the same without being told."""


_MEANINGS: dict[str, Callable[[Launch, str, str], None]] = {
    "ranks": _ranks,
    "one": _must_be(("1", "1:1")),
    "zero": _must_be(("0",)),
    "address": _must_be(_LOCAL),
    "port": _port,
    "nodes": _refuse_nodes,
    "logs": _refuse_logs,
    "restarts": _restarts,
    "variable": _variable,
    "devices": _devices,
    "none": _nothing,
}
