"""Each call of the control connections, over a unix socket and over TCP with a secret."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from ranks_in_threads import SECRET, assert_soon, free_address, on_each, world

from shim.core.control import Control
from shim.errors import ArgumentError, CollectiveTimeoutError, PeerLostError, StateError


@pytest.fixture(params=["unix", "tcp", "tcp without a secret"])
def four(request: pytest.FixtureRequest) -> Iterator[list[Control]]:
    address = "" if request.param == "unix" else free_address()
    with world(4, address, SECRET if request.param == "tcp" else b"") as controls:
        yield controls


def test_peers_are_what_each_rank_said(four: list[Control]) -> None:
    for rank, control in enumerate(four):
        assert (control.rank, control.size) == (rank, 4)
        assert [peer.facts for peer in control.peers] == [b"facts of %d" % other for other in range(4)]
        assert {peer.address for peer in control.peers} == {"127.0.0.1"}
        assert len({(peer.host, peer.host_id, peer.pid) for peer in control.peers}) == 1


@pytest.mark.parametrize("members", [[0, 1, 2, 3], [3, 1], [2, 0, 1], [2]])
def test_exchange_returns_payloads_in_the_members_order(four: list[Control], members: list[int]) -> None:
    for turn in range(3):
        got = on_each(members, lambda rank: four[rank].exchange("a key", members, b"%d %d" % (rank, turn), 5))  # noqa: B023
        assert got == {rank: [b"%d %d" % (other, turn) for other in members] for rank in members}


def test_exchanges_with_different_keys_do_not_mix(four: list[Control]) -> None:
    def both(rank: int) -> list[dict[int, list[bytes]]]:
        one = threading.Thread(target=lambda: found.append(four[rank].exchange("x", range(4), b"x%d" % rank, 5)))
        found: list[list[bytes]] = []
        one.start()
        time.sleep(0.01 * rank)
        other = four[rank].exchange("y", range(4), b"y%d" % rank, 5)
        one.join()
        return [*found, other]

    expected = [[b"%s%d" % (key, rank) for rank in range(4)] for key in (b"x", b"y")]
    assert on_each(range(4), both) == dict.fromkeys(range(4), expected)


def test_large_payloads_arrive_whole(four: list[Control]) -> None:
    payloads = [bytes([rank]) * (3_000_000 + rank) for rank in range(4)]
    assert on_each(range(4), lambda rank: four[rank].exchange("", range(4), payloads[rank], 10)) == dict.fromkeys(
        range(4), payloads
    )


def test_exchange_names_those_that_do_not_come(four: list[Control]) -> None:
    got = on_each([0, 2], lambda rank: four[rank].exchange("k", [0, 1, 2, 3], b"", 0.2 if rank else 0.3))
    for rank in (0, 2):  # rank 2 has given up when rank 0 does, but had come
        assert isinstance(got[rank], CollectiveTimeoutError)
        assert got[rank].ranks == (1, 3)
    assert "exchange 'k' among ranks 0-3: ranks 1 and 3 have not come within 0.2 s (rank 2 of 4)" in str(got[2])
    again = on_each(range(4), lambda rank: four[rank].exchange("k", [0, 1, 2, 3], b"%d" % rank, 5))
    assert again == {key: [b"0", b"1", b"2", b"3"] for key in range(4)}


def test_exchange_refuses_wrong_members(four: list[Control]) -> None:
    for members in ([1, 2], [0, 0], [0, 4]):
        with pytest.raises(ArgumentError, match="members must be"):
            four[0].exchange("k", members, b"", 1)
    with pytest.raises(ArgumentError, match="at most, got 40000000 from each of 4 ranks"):
        four[0].exchange("k", range(4), bytes(40_000_000), 1)


def test_two_threads_cannot_exchange_under_one_key(four: list[Control]) -> None:
    first = threading.Thread(target=lambda: four[0].exchange("k", [0, 1], b"", 5))
    first.start()
    assert_soon(lambda: four[0]._exchanging)
    with pytest.raises(StateError, match="another thread of rank 0 is exchanging 'k'"):
        four[0].exchange("k", [0, 1], b"", 1)
    four[1].exchange("k", [0, 1], b"", 5)
    first.join()


def test_get_waits_for_put(four: list[Control]) -> None:
    waiting = {}
    thread = threading.Thread(target=lambda: waiting.update(on_each(range(4), lambda rank: four[rank].get("later", 5))))
    thread.start()
    time.sleep(0.02)
    four[2].put("later", b"value")
    thread.join()
    assert waiting == dict.fromkeys(range(4), b"value")
    four[0].put("later", b"")
    assert_soon(lambda: four[3].get("later", 1) == b"")
    four[1].drop("later")
    on_each(range(4), lambda rank: four[rank].exchange("it is dropped", [0, 1, 2, 3], b"", 5))
    with pytest.raises(CollectiveTimeoutError, match="get 'later'"):
        four[3].get("later", 0.05)
    with pytest.raises(CollectiveTimeoutError, match=r"get 'never': no rank has put it within 0.05 s \(rank 1 of 4\)"):
        four[1].get("never", 0.05)


def test_tell_reaches_listeners_in_order_and_keeps_what_came_before(four: list[Control]) -> None:
    heard: dict[int, list[tuple[int, bytes]]] = {rank: [] for rank in range(4)}
    four[1].tell("topic", [0, 1, 3], b"before")
    time.sleep(0.05)
    for rank in range(4):
        four[rank].listen("topic", lambda sender, payload, rank=rank: heard[rank].append((sender, payload)))
    for number in range(3):
        four[1].tell("topic", [0, 3], b"%d" % number)
    numbers = [(1, b"0"), (1, b"1"), (1, b"2")]
    assert_soon(
        lambda: heard == {0: [(1, b"before"), *numbers], 1: [(1, b"before")], 2: [], 3: [(1, b"before"), *numbers]}
    )
    four[3].forget("topic")
    on_each([1, 3], lambda rank: four[rank].exchange("it is forgotten", [1, 3], b"", 5))
    four[1].tell("topic", [3, 0], b"last")
    assert_soon(lambda: heard[0][-1] == (1, b"last"))
    on_each([1, 3], lambda rank: four[rank].exchange("it has come to rank 3, too", [1, 3], b"", 5))
    assert heard[3][-1] == (1, b"2")
    four[3].listen("topic", lambda sender, payload: heard[2].append((sender, payload)))
    on_each([1, 3], lambda rank: four[rank].exchange("it is listened to again", [1, 3], b"", 5))
    four[1].tell("topic", [3], b"new")
    assert_soon(lambda: heard[2] == [(1, b"new")])  # and not what came when it was forgotten


def test_a_handlers_exception_does_not_end_the_thread(four: list[Control], capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[bytes] = []

    def fail_once(sender: int, payload: bytes) -> None:
        heard.append(payload)
        if len(heard) == 1:
            raise ZeroDivisionError("on purpose")

    for listener in (0, 2):
        heard.clear()
        four[listener].listen("topic", fail_once)
        four[1].tell("topic", [listener], b"one")
        four[1].tell("topic", [listener], b"two")
        assert_soon(lambda: heard == [b"one", b"two"])
        assert_soon(lambda: "ZeroDivisionError: on purpose" in capfd.readouterr().err)


def test_ask_gathers_the_answers_there_are(four: list[Control], capfd: pytest.CaptureFixture[str]) -> None:
    four[0].answer("sum", lambda sender, question: b"%d for %d" % (len(question), sender))
    four[2].answer("sum", lambda sender, question: question * 2)
    four[3].answer("sum", lambda sender, question: question[:0] + bytes(1 // 0))
    assert four[1].ask("sum", [0, 2, 3], b"abc", 5) == {
        0: b"3 for 1",
        2: b"abcabc",
    }  # at once: 3 has said that it cannot
    assert_soon(lambda: "ZeroDivisionError" in capfd.readouterr().err)
    began = time.monotonic()
    assert four[0].ask("sum", [1, 2], b"x", 0.1) == {2: b"xx"}  # nobody answers on 1
    assert 0.09 < time.monotonic() - began < 5
    four[1].close("tired")
    assert_soon(lambda: four[0].is_gone(1))
    assert four[0].ask("sum", [1, 2], b"x", 5) == {2: b"xx"}


def test_calls_on_closed_connections_say_so(four: list[Control]) -> None:
    four[3].close()
    four[3].close()
    four[3].forget("topic")
    with pytest.raises(StateError, match="rank 3 has left the group"):
        four[3].put("k", b"")


def test_closing_ends_a_call_in_progress(four: list[Control]) -> None:
    got: dict[int, object] = {}
    thread = threading.Thread(target=lambda: got.update(on_each([2], lambda rank: four[2].get("never", 10))))
    thread.start()
    time.sleep(0.05)
    four[2].close()
    thread.join(2)
    assert isinstance(got[2], StateError)


def test_an_exchange_takes_well_under_a_millisecond_on_a_quiet_machine(four: list[Control]) -> None:
    def many(rank: int) -> float:
        took = []
        for _ in range(50):
            began = time.perf_counter()
            four[rank].exchange("k", range(4), b"", 5)
            took.append(time.perf_counter() - began)
        return sorted(took)[5]

    assert max(on_each(range(4), many).values()) < 0.01  # ten times as long, for a busy one


def test_without_a_hub_nothing_more_is_known(four: list[Control]) -> None:
    four[0]._link.loop.stop()  # as if its process had been killed
    for rank in (1, 2, 3):
        assert_soon(lambda rank=rank: four[rank].is_gone(0))
        with pytest.raises(
            PeerLostError, match=r"rank 0's process .* died .* nothing is known of the other ranks"
        ) as lost:
            four[rank].exchange("k", [1, 2, 3], b"", 5)
        assert lost.value.ranks == (0,)
        assert four[rank].ask("topic", [1, 2], b"", 5) == {}
        assert not four[rank].is_gone(rank % 3 + 1)
