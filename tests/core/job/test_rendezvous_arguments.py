"""Who a process is, from the arguments of an init function: rank, world size and a URL."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest
from launcher_variables import assert_raises, by_hand, find, open_mpi, torchrun

from shim.errors import ArgumentError, ShimError, StateError


class TestArguments:
    @pytest.mark.parametrize("init_method", [None, "env://"])
    def test_rank_and_size_win_over_the_environment(self, init_method: str | None) -> None:
        me = find(torchrun(0, 2), 2, 3, init_method)
        assert (me.rank, me.size, me.key) == (2, 3, find(torchrun(0, 2)).key)

    @pytest.mark.parametrize(("rank", "size"), [(1, None), (None, 3), (1, 3)])
    def test_each_completes_the_other(self, rank: int | None, size: int | None) -> None:
        me = find(by_hand(0, 2), rank, size)
        assert (me.rank, me.size) == (0 if rank is None else rank, 2 if size is None else size)

    def test_what_they_replace_is_not_read(self) -> None:
        assert find(by_hand(0, 2) | {"RANK": "abc", "WORLD_SIZE": "def"}, 1, 2).rank == 1

    def test_an_address_in_the_environment_is_enough_beside_them(self) -> None:
        address = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
        assert find(address, 1, 2).key == find(address, 0, 2).key == find(by_hand(0, 2)).key

    @pytest.mark.parametrize("init_method", [None, "tcp://localhost:29500", "file:///tmp/meeting"])
    def test_a_world_of_one_needs_no_address_and_meets_nobody(self, init_method: str | None) -> None:
        me = find({}, 0, 1, init_method)
        assert (me.rank, me.size) == (0, 1)
        assert me.key != find({}, 0, 1, init_method).key

    def test_integers_of_other_types_are_taken(self) -> None:
        assert find(by_hand(0, 2), np.int64(1), np.int32(2)).rank == 1

    @pytest.mark.parametrize(
        ("rank", "size", "kind", "words"),
        [
            (0, None, ArgumentError, ["world_size must be given too"]),
            (None, 2, ArgumentError, ["rank must be given too"]),
            (0, 2, StateError, ["MASTER_ADDR and MASTER_PORT are not set", "2 ranks"]),
            (2, 2, ArgumentError, ["the rank must be in 0..1, got 2"]),
            (-2, 2, ArgumentError, ["the rank must be in 0..1, got -2"]),
            (0, 0, ArgumentError, ["the world size must be at least 1, got 0"]),
            (True, 2, ArgumentError, ["rank must be an int, got True"]),
            ("0", 2, ArgumentError, ["rank must be an int, got '0'"]),
            (0, 2.0, ArgumentError, ["world_size must be an int, got 2.0"]),
        ],
    )
    def test_wrong_ones_are_refused(self, rank: object, size: object, kind: type[ShimError], words: list[str]) -> None:
        assert_raises(kind, words, {}, rank, size)


class TestInitMethod:
    @pytest.mark.parametrize(
        "init_method", ["tcp://localhost:29501", "tcp://127.0.0.1:29501", f"tcp://{socket.gethostname()}:29501"]
    )
    def test_tcp_names_a_job_by_its_port(self, init_method: str) -> None:
        me = find({}, 1, 2, init_method)
        assert (me.rank, me.size) == (1, 2)
        assert me.key == find({}, 0, 2, "tcp://localhost:29501").key != find({}, 0, 2, "tcp://localhost:29502").key

    def test_tcp_and_variables_meet_at_the_same_port(self) -> None:
        assert find({}, 1, 2, "tcp://localhost:29500").key == find(by_hand(0, 2)).key

    def test_tcp_binds_no_port(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            assert find({}, 0, 2, f"tcp://127.0.0.1:{taken.getsockname()[1]}").rank == 0

    def test_file_names_a_job_by_its_path_and_makes_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path)
        me, other = find({}, 0, 2, f"file://{tmp_path}/meeting"), find({}, 1, 2, f"file://{tmp_path}/link/meeting")
        assert me.key == other.key != find({}, 0, 2, f"file://{tmp_path}/another").key
        assert not (tmp_path / "meeting").exists()

    @pytest.mark.parametrize("url", ["tcp://localhost:29500?rank=1&world_size=3", "file:///tmp/x?world_size=3&rank=1"])
    def test_a_query_gives_rank_and_size(self, url: str) -> None:
        me = find({}, None, None, url)
        assert (me.rank, me.size) == (1, 3)

    def test_arguments_win_over_a_query(self) -> None:
        assert find({}, 2, None, "tcp://localhost:29500?rank=1&world_size=3").rank == 2

    def test_a_launcher_completes_it(self) -> None:
        me = find(open_mpi(1, 2), None, None, "tcp://localhost:29500")
        assert (me.rank, me.size, me.key) == (1, 2, find({}, 0, 2, "tcp://localhost:29500").key)

    @pytest.mark.parametrize(
        ("url", "kind", "words"),
        [
            ("mpi://", ArgumentError, ["env://, file://, tcp://", "'mpi://'"]),
            ("localhost:29500", ArgumentError, ["env://, file://, tcp://"]),
            ("tcp://localhost", ArgumentError, ["tcp://host:port", "'tcp://localhost'"]),
            ("tcp://:29500", ArgumentError, ["tcp://host:port"]),
            ("tcp://localhost:0", ArgumentError, ["1 to 65535, got 0"]),
            ("tcp://localhost:65536", ArgumentError, ["tcp://host:port"]),
            ("tcp://localhost:abc", ArgumentError, ["tcp://host:port", "abc"]),
            ("tcp://no-such-host.invalid:29500", ArgumentError, ["init_method", "no-such-host.invalid"]),
            ("file://", ArgumentError, ["file:///path"]),
            ("file://relative", ArgumentError, ["file:///path"]),
            ("file://other/path", ArgumentError, ["file:///path"]),
            ("tcp://localhost:29500?rank=x", ArgumentError, ["init_method's rank", "'x'"]),
            ("tcp://localhost:29500?rank=2", ArgumentError, ["rank must be in 0..1, got 2"]),
        ],
    )
    def test_wrong_ones_are_refused(self, url: str, kind: type[ShimError], words: list[str]) -> None:
        assert_raises(kind, words, {}, None if "rank" in url else 0, 2, url)

    def test_one_of_another_host_is_where_ranks_of_several_meet(self) -> None:
        job = find({}, 0, 2, "tcp://192.0.2.1:29500")
        assert (job.several_hosts, job.meeting_address) == (
            f"init_method gives 192.0.2.1, which is not this host, {socket.gethostname()}",
            "192.0.2.1:29500",
        )

    @pytest.mark.parametrize("url", ["tcp://localhost:29500", "file:///tmp/meeting"])
    def test_without_rank_and_size_it_says_nothing(self, url: str) -> None:
        assert_raises(ArgumentError, ["rank and world_size must be given too"], {}, None, None, url)
