"""Examples that name a place which all programs of the machine share get one of their own, and it is said."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from shim.conformance.examples.adapting import WHY_A_FOLDER, WHY_A_PORT, free_ports, in_its_own_place
from shim.conformance.examples.reading.reader import examples_in


def example_of(*lines):
    (example,) = examples_in("".join(f">>> {line}\n" for line in lines), "torch", "torch.distributed.x", "a test")
    return example


def placed(example):
    with in_its_own_place(example) as (own, reasons):
        return [step.source for step in own.steps], reasons


@pytest.mark.parametrize(
    "line", ['dist.FileStore("/tmp/filestore", 2)', "dist.init_process_group(init_method='file:///tmp/some/file')"]
)
def test_a_file_to_meet_at_lies_in_a_folder_of_its_own_until_the_end(line):
    with in_its_own_place(example_of(line)) as (own, reasons), in_its_own_place(example_of(line)) as (other, _):
        assert reasons == (WHY_A_FOLDER,)
        folder = Path(re.search(r"(/[^'\"]*shim-example-\w+)/", own.steps[0].source.replace("file://", ""))[1])
        assert own.steps[0].source == line.replace("/tmp", str(folder), 1)
        assert other.steps[0].source != own.steps[0].source
        (folder / "left").touch()
    assert not folder.exists()


def test_a_port_to_meet_at_is_a_free_one_and_the_same_in_all_of_the_example():
    lines = (
        'a = TCPStore("127.0.0.1", 1234, is_master=True)',
        'b = dist.TCPStore("localhost", 1234, 2)',
        "dist.init_process_group(init_method='tcp://10.1.1.20:23456', rank=3)",
    )
    sources, reasons = placed(example_of(*lines))
    assert reasons == (WHY_A_PORT,)
    ports = [re.search(r"\d{5}", source)[0] for source in sources]
    assert ports[0] == ports[1] != ports[2]
    assert sources[0] == lines[0].replace("1234", ports[0])
    assert placed(example_of(*lines))[0] != sources


@pytest.mark.parametrize(
    "line", ['open("/tmp/data")', "x = 1234", 'f("127.0.0.1", 1234)', 'FileStore("/tmpfile")', "TCPStore(host, 1234)"]
)
def test_what_is_no_place_to_meet_at_stays_as_it_is(line):
    assert placed(example_of(line)) == ([line], ())


def test_ports_that_are_taken_are_not_given():
    ports = free_ports(3)
    assert len(set(ports)) == 3
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[0]))
        assert ports[0] not in free_ports(9000)
    with pytest.raises(OSError, match="no 20000 free ports"):
        free_ports(20000)
