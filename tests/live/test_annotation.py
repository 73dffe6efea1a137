"""Can anybody but the annotator's own page read maps or write labels?"""

import http.client
import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import numpy as np
import pytest

from commands import PATIENCE
from experiments.map_classifier.made import SECRETS, make_drawn
from headscope.errors import InputError, RunFolderError
from headscope.experiments.map_classifier.annotation_session import Session
from headscope.live.annotation import MOST_BYTES, annotation_server, picture

JSON = {"Content-Type": "application/json"}
GOOD = json.dumps({"number": 2, "label": "block"})


def path_of(server, asked=""):
    return urlsplit(server.address).path + asked


def ask(server, path, *, method="GET", body=None, headers=()):
    """(status, headers, body); headers go out as they are given."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request(method, path, body=body, headers=dict(headers))
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def post(server, asked, body, headers=JSON):
    return ask(server, path_of(server, asked), method="POST", body=body, headers=headers)


def labels(server):
    return server.app.session.labels("a")


# --- what it gives out ------------------------------------------------------------------------


def test_a_label_is_in_the_file_when_it_is_answered(server):
    status, _, body = post(server, "label", GOOD)
    assert (status, json.loads(body)) == (200, {"number": 2, "label": "block"})
    assert server.app.session.label_file("a").read_text() == "2,block\n"
    status, _, body = post(server, "undo", "{}")
    assert (status, json.loads(body)) == (200, {"number": 2})
    status, _, body = post(server, "undo", "{}")
    assert (status, json.loads(body)) == (200, {"number": None})
    assert labels(server) == {}


def test_a_map_is_the_roots_of_its_shares_in_bytes(server):
    weights = make_drawn(6)[3].map.astype(float)
    status, _, body = ask(server, path_of(server, "maps/3"))
    assert status == 200
    found = np.frombuffer(body, np.uint8).reshape(weights.shape)
    np.testing.assert_allclose(found, 255 * np.sqrt(weights / weights.max()), atol=0.51)
    assert found.max() == 255


def test_a_second_server_of_an_annotator_is_refused_and_says_who_serves(session, annotating):
    """Two once took the labels of one annotator, and neither showed those of the other."""
    with annotating(session):
        with pytest.raises(RunFolderError) as told, annotation_server(session, "a"):
            pass
        first, second = str(told.value).splitlines()
        assert f"(process {os.getpid()} on " in first
        assert first.endswith("is writing to " + str(session.label_file("a")))
        assert second == "go on in its page, end it, or give another --annotator"
        with annotating(session, "b"):
            pass
    with annotating(session):
        pass


def test_a_server_without_its_port_lets_go_of_the_annotator(session, monkeypatch):
    with annotation_server(session, "a") as server, monkeypatch.context() as patched:
        patched.setattr("headscope.live.server.PORTS_TRIED", 1)
        refused = pytest.raises(InputError, match="are in use")
        with refused, annotation_server(session, "b", port=server.port):
            pass
    with annotation_server(session, "b"):
        pass
    assert not list(session.folder.glob(".labels-b*"))


def test_a_map_of_nothing_is_0():
    assert not picture(np.zeros((3, 3), np.float16)).any()


def test_nothing_says_what_the_maps_are_of(server):
    for asked in ("", "maps/1"):
        _, headers, body = ask(server, path_of(server, asked))
        text = body + repr(headers).encode()
        assert not [name for name in SECRETS if name.encode() in text]
        assert b"ffffffffff" not in text  # the model's sha256
        assert str(server.app.session.folder).encode() not in text


def test_the_policy_of_the_page_lets_it_speak_to_its_server_alone(server):
    _, headers, _ = ask(server, path_of(server))
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.endswith("; connect-src 'self'; frame-ancestors 'none'")
    assert "unsafe" not in policy


# --- who may not ask, and what is refused -----------------------------------------------------


def test_it_listens_to_this_machine_alone(server):
    assert server.own.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "change",
    [{"Host": "example.org"}, {"Origin": "http://example.org"}, {"Origin": "null"}],
)
def test_a_page_of_another_name_can_neither_read_nor_label(server, change):
    assert ask(server, path_of(server), headers=change)[0] == 403
    assert ask(server, path_of(server, "maps/0"), headers=change)[0] == 403
    assert post(server, "label", GOOD, JSON | change)[0] == 403
    assert labels(server) == {}


def test_without_the_secret_there_is_nothing(server):
    for path in ("/", "/x/", path_of(server)[:-2] + "/", path_of(server)[:-1]):
        status, _, body = ask(server, path)
        assert status == 403
        assert b"annotat" not in body
        assert ask(server, path + "label", method="POST", body=GOOD, headers=JSON)[0] == 403
    assert labels(server) == {}


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS", "DELETE"])
def test_only_post_labels(server, method):
    for asked in ("label", "undo", "label?number=2&label=block"):
        answer = ask(server, path_of(server, asked), method=method, body=GOOD, headers=JSON)
        assert answer[0] == 405
    assert labels(server) == {}


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None]
)
def test_what_a_form_of_another_page_can_send_is_no_label(server, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    assert post(server, "label", GOOD, headers)[0] == 422
    assert labels(server) == {}


def test_a_body_too_large_is_refused(server):
    padded = GOOD + " " * (MOST_BYTES - len(GOOD))
    assert post(server, "label", padded + " ")[0] == 413
    assert labels(server) == {}
    assert post(server, "label", padded)[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "null",
        "{",
        '{"number": 2}',
        '{"label": "block"}',
        "\xff",
        '{"number": 2, "label": "undo"}',
        '{"number": 6, "label": "block"}',
        '{"number": -1, "label": "block"}',
        '{"number": "2", "label": "block"}',
        '{"number": 2.0, "label": "block"}',
        '{"number": true, "label": "block"}',
        '{"number": 2, "label": "block", "annotator": "b"}',
        '{"number": 1e999, "label": "block"}',
        '{"number": 2, "label": ["block"]}',
        '{"number": 2, "label": "block\\n3,block"}',
        "[" * 900,
    ],
)
def test_what_is_no_label_is_refused_and_not_written(server, body):
    data = body.encode("latin-1")
    assert post(server, "label", data)[0] == 422
    assert not server.app.session.label_file("a").exists()


@pytest.mark.parametrize(
    "asked",
    [
        "maps/../../session/provenance.csv",
        "../provenance.csv",
        "provenance.csv",
        "maps.npz",
        "maps/",
        "maps/6",
        "maps/-1",
        "maps/1.0",
        "maps/01x",
        "maps",
        "..%2f..%2fetc%2fpasswd",
        "/etc/passwd",
        "%2e%2e/",
        "maps/" + "9" * 5000,
        "labels-a.csv",
        "assets/annotate.js",
        "favicon.ico",
        "maps/%D9%A1",
    ],
)
def test_no_path_leads_to_a_file(server, asked):
    assert ask(server, path_of(server) + asked)[0] == 404


# --- around it --------------------------------------------------------------------------------


def test_a_damaged_file_of_labels_is_told_where_it_is_damaged(session, annotating):
    with annotating(session) as server:
        session.label_file("a").write_text("0,block\nwhat\n")
        status, _, body = ask(server, path_of(server))
        assert status == 422
        assert b"labels-a.csv:2: found 'what'" in body
        assert ask(server, path_of(server, "maps/0"))[0] == 200
    with pytest.raises(InputError, match=r"labels-a\.csv:2"), annotating(session):
        pass


def test_a_label_that_cannot_be_kept_is_not_answered_as_kept(server, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headscope.experiments.map_classifier.annotation_session.os.fsync", full)
    status, _, body = post(server, "label", GOOD)
    assert status == 503
    assert b"No space left on device" in body


def test_the_labels_of_many_connections_are_all_kept(tmp_path, annotating):
    session = Session.create(tmp_path / "many", make_drawn(40))
    with annotating(session) as server, ThreadPoolExecutor(8) as pool:
        bodies = [json.dumps({"number": n, "label": "block"}) for n in range(40)]
        assert {answer[0] for answer in pool.map(partial(post, server, "label"), bodies)} == {200}
    assert session.labels("a") == dict.fromkeys(range(40), "block")
