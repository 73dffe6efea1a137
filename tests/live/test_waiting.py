"""Is only the newest request of a client worked on, and each client in turn?"""

from __future__ import annotations

import threading

import pytest

from headscope.live.waiting import MOST_WAITING, CrowdedError, DroppedError, WaitingLine


@pytest.fixture
def line():
    return WaitingLine(3)


def put(line, client, kind="read", **more):
    return line.put(client, kind, lambda ticket: f"{client} {kind}", **more)


def all_of(line):
    """What is worked on, in its order."""
    done = []
    while ticket := line.take():
        ticket.run()
        done.append(ticket.answer.result())
    return done


def test_clients_take_turns(line):
    for kind in ("x", "y", "z"):
        put(line, "a", kind)
    put(line, "b", "x")
    put(line, "c", "x")
    assert all_of(line) == ["a x", "b x", "c x", "a y", "a z"]


def test_of_texts_typed_one_after_the_other_the_newest_alone_is_read(line):
    texts = [line.put("a", "read", lambda _, at=at: at, renews=True) for at in range(5)]
    assert all_of(line) == [4]
    for old in texts[:-1]:
        with pytest.raises(DroppedError):
            old.answer.result(0)


def test_a_newer_text_drops_the_heads_that_the_old_one_asked_for(line):
    head = put(line, "a", "head 0 1 2")
    other = put(line, "b", "head 0 1 2")
    put(line, "a", "read", renews=True)
    assert isinstance(head.answer.exception(0), DroppedError)
    assert all_of(line) == ["b head 0 1 2", "a read"]
    assert other.answer.result(0) == "b head 0 1 2"


def test_a_request_that_runs_is_ended_by_a_newer_one_of_its_client_alone(line):
    begun, newer, passed = threading.Event(), threading.Event(), []

    def layers(ticket):
        begun.set()
        assert newer.wait(20)
        ticket.check()
        passed.append("a second layer")

    running = line.put("a", "read", layers, renews=True)
    line.start()
    assert begun.wait(20)
    put(line, "b", "read", renews=True)
    assert not running.dropped
    after = put(line, "a", "read", renews=True)
    newer.set()
    assert isinstance(running.answer.exception(20), DroppedError)
    assert after.answer.result(20) == "a read"
    assert passed == []
    line.close()


def test_who_goes_away_is_not_worked_for(line):
    gone, there = put(line, "a"), put(line, "b")
    line.leave(gone)
    assert all_of(line) == ["b read"]
    assert isinstance(gone.answer.exception(0), DroppedError)
    line.leave(there)  # too late, and no harm


def test_an_error_is_the_answer_and_the_worker_stays(line):
    def fails(_):
        raise MemoryError

    line.start()
    assert isinstance(line.put("a", "read", fails).answer.exception(20), MemoryError)
    assert put(line, "a").answer.result(20) == "a read"
    line.close()


def test_too_many_are_turned_away(line):
    for client in "abc":
        put(line, client)
    with pytest.raises(CrowdedError, match="found 3 waiting clients; wanted 3 at most"):
        put(line, "d")
    for at in range(MOST_WAITING - 1):
        put(line, "a", f"head {at}")
    with pytest.raises(CrowdedError, match="requests of one page"):
        put(line, "a", "one more")
    put(line, "a", "read", renews=True)  # a newer text is always taken
    assert all_of(line) == ["b read", "c read", "a read"]


def test_at_the_end_nobody_waits_for_ever(line):
    waiting = put(line, "a")
    line.start()
    line.close()
    assert waiting.answer.done()
