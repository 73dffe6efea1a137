"""Can anybody but the annotator's own page read maps or write labels?"""

import http.client
import json
import os
import socket
from urllib.parse import urlsplit

import numpy as np
import pytest

from commands import PATIENCE
from experiments.map_classifier.made import SECRETS, make_drawn
from headscope.errors import InputError, RunFolderError
from headscope.experiments.map_classifier.annotation_server import (
    LARGEST_BODY,
    AnnotationServer,
    picture,
)
from headscope.experiments.map_classifier.annotation_session import Session

JSON = {"Content-Type": "application/json"}
GOOD = json.dumps({"number": 2, "label": "block"})


def path_of(server, asked=""):
    return urlsplit(server.address).path + asked


def ask(server, path, *, method="GET", body=None, headers=()):
    """(status, headers, body); headers go out as they are given."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    connection.request(method, path, body=body, headers=dict(headers))
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def raw(server, text):
    """What is answered to these very bytes."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE) as sent:
        sent.sendall(text.encode("latin-1"))
        return b"".join(iter(lambda: sent.recv(65536), b""))


def labels(server):
    return server.session.labels("a")


# --- what it gives out ------------------------------------------------------------------------


def test_a_label_is_in_the_file_when_it_is_answered(server):
    status, _, body = ask(server, path_of(server, "label"), method="POST", body=GOOD, headers=JSON)
    assert (status, json.loads(body)) == (200, {"number": 2, "label": "block"})
    assert server.session.label_file("a").read_text() == "2,block\n"
    status, _, body = ask(server, path_of(server, "undo"), method="POST", body="{}", headers=JSON)
    assert (status, json.loads(body)) == (200, {"number": 2})
    status, _, body = ask(server, path_of(server, "undo"), method="POST", body="{}", headers=JSON)
    assert (status, json.loads(body)) == (200, {"number": None})
    assert labels(server) == {}


def test_a_map_is_the_roots_of_its_shares_in_bytes(server):
    weights = make_drawn(6)[3].map.astype(float)
    status, _, body = ask(server, path_of(server, "maps/3"))
    assert status == 200
    found = np.frombuffer(body, np.uint8).reshape(weights.shape)
    np.testing.assert_allclose(found, 255 * np.sqrt(weights / weights.max()), atol=0.51)
    assert found.max() == 255


def test_a_second_server_of_an_annotator_is_refused_and_says_who_serves(session, serve):
    """Two once took the labels of one annotator, and neither showed those of the other."""
    with serve(session):
        with pytest.raises(RunFolderError) as told:
            AnnotationServer(session, "a")
        first, second = str(told.value).splitlines()
        assert f"(process {os.getpid()} on " in first
        assert first.endswith("is writing to " + str(session.label_file("a")))
        assert second == "go on in its page, end it, or give another --annotator"
        with serve(session, "b"):
            pass
    with serve(session):
        pass


def test_a_server_without_its_port_lets_go_of_the_annotator(session, server):
    with pytest.raises(InputError, match="cannot serve on port"):
        AnnotationServer(session, "b", port=server.server_port)
    AnnotationServer(session, "b").server_close()
    assert not list(session.folder.glob(".labels-b*"))


def test_a_map_of_nothing_is_0():
    assert not picture(np.zeros((3, 3), np.float16)).any()


def test_nothing_says_what_the_maps_are_of(server):
    for asked in ("", "maps/1"):
        _, headers, body = ask(server, path_of(server, asked))
        text = body + repr(headers).encode()
        assert not [name for name in SECRETS if name.encode() in text]
        assert b"ffffffffff" not in text  # the model's sha256
        assert str(server.session.folder).encode() not in text


def test_every_answer_forbids_keeping_framing_and_asking_elsewhere(server):
    asked = [path_of(server), path_of(server, "maps/0"), path_of(server, "maps/9"), "/", "/x/"]
    for path in asked:
        _, headers, _ = ask(server, path)
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "Python" not in headers["Server"]
        assert "Access-Control-Allow-Origin" not in headers
    policy = ask(server, path_of(server))[1]["Content-Security-Policy"]
    assert "connect-src 'self'" in policy


# --- who may not ask --------------------------------------------------------------------------


def test_it_listens_to_this_machine_alone(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_every_server_has_its_own_long_secret(session, serve):
    with serve(session) as one, serve(session, "b") as other:
        assert one.secret != other.secret
        assert min(len(one.secret), len(other.secret)) >= 32
        assert ask(other, path_of(one))[0] == 404


@pytest.mark.parametrize(
    "change",
    [
        lambda s: "/",
        lambda s: s[:-2] + "/",
        lambda s: s[:-1],
        lambda s: s + "/",
        lambda s: s.upper(),
        lambda s: "/x" + s,
        lambda s: "//",
        lambda s: s.replace("/", "/%00", 1),
        lambda s: "/é/",
    ],
)
def test_without_the_secret_there_is_nothing(server, change):
    asked = change(path_of(server))
    answer = raw(server, f"GET {asked} HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n")
    assert answer.split(b" ", 2)[1] in (b"404", b"400")
    assert b"<html" not in answer
    answer = ask(
        server,
        (asked.encode("ascii", "replace").decode() or "/") + "label",
        method="POST",
        body=GOOD,
        headers=JSON,
    )
    assert answer[0] == 404
    assert labels(server) == {}


@pytest.mark.parametrize(
    "host",
    [
        "example.org",
        "example.org:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.nip.io:{port}",
        "",
        "[::1]:{port}",
        "LOCALHOST.evil:{port}",
    ],
)
def test_a_page_whose_name_points_here_gets_nothing(server, host):
    headers = {**JSON, "Host": host.format(port=server.server_port)}
    assert ask(server, path_of(server), headers=headers)[0] == 403
    answer = ask(server, path_of(server, "label"), method="POST", body=GOOD, headers=headers)
    assert answer[0] == 403
    assert labels(server) == {}


def test_one_host_must_be_named_and_one_only(server):
    host = f"Host: 127.0.0.1:{server.server_port}\r\n"
    for hosts, status in ((host, b"200"), ("", b"403"), (host + host, b"403")):
        answer = raw(server, f"GET {path_of(server)} HTTP/1.0\r\n{hosts}\r\n")
        assert answer.split(b" ", 2)[1] == status


@pytest.mark.parametrize("origin", ["http://example.org", "null", "https://127.0.0.1:{port}", ""])
def test_a_page_of_another_origin_cannot_label(server, origin):
    headers = {**JSON, "Origin": origin.format(port=server.server_port)}
    answer = ask(server, path_of(server, "label"), method="POST", body=GOOD, headers=headers)
    assert answer[0] == 403
    assert labels(server) == {}


def test_localhost_and_the_page_itself_may_label(server):
    own = {
        **JSON,
        "Origin": f"http://localhost:{server.server_port}",
        "Host": f"localhost:{server.server_port}",
    }
    answer = ask(server, path_of(server, "label"), method="POST", body=GOOD, headers=own)
    assert answer[0] == 200
    assert labels(server) == {2: "block"}


# --- what cannot be asked ---------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS", "DELETE"])
def test_only_post_labels(server, method):
    for asked in ("label", "undo", "label?number=2&label=block"):
        answer = ask(server, path_of(server, asked), method=method, body=GOOD, headers=JSON)
        assert answer[0] in (404, 501)
    assert labels(server) == {}


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None]
)
def test_what_a_form_of_another_page_can_send_is_no_label(server, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    answer = ask(server, path_of(server, "label"), method="POST", body=GOOD, headers=headers)
    assert answer[0] == 415
    assert labels(server) == {}


def test_a_body_too_large_is_refused_before_it_is_read(server):
    text = f"POST {path_of(server, 'label')} HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n"
    text += f"Content-Type: application/json\r\nContent-Length: {LARGEST_BODY + 1}\r\n\r\n"
    assert raw(server, text).split(b" ", 2)[1] == b"413"  # nothing of it was sent
    assert raw(server, text.replace(str(LARGEST_BODY + 1), "9" * 30)).split(b" ", 2)[1] == b"411"
    padded = GOOD + " " * (LARGEST_BODY - len(GOOD))
    answer = ask(server, path_of(server, "label"), method="POST", body=padded, headers=JSON)
    assert answer[0] == 200


@pytest.mark.parametrize(
    "length",
    ["", "Content-Length: -1\r\n", "Content-Length: x\r\n", "Transfer-Encoding: chunked\r\n"],
)
def test_a_body_without_a_length_is_refused(server, length):
    text = f"POST {path_of(server, 'label')} HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n"
    text += f"Content-Type: application/json\r\n{length}\r\n"
    assert raw(server, text).split(b" ", 2)[1] == b"411"


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
        '{"number": 1e999, "label": "block"}',
        '{"number": 2, "label": ["block"]}',
        '{"number": 2, "label": "block\\n3,block"}',
        "[" * 900,
    ],
)
def test_what_is_no_label_is_refused_and_not_written(server, body):
    data = body.encode("latin-1")
    answer = ask(server, path_of(server, "label"), method="POST", body=data, headers=JSON)
    assert answer[0] == 400
    assert not server.session.label_file("a").exists()


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
        "maps/%31",
        "maps/1/",
        "maps/1?x",
        "maps",
        "..%2f..%2fetc%2fpasswd",
        "maps/../maps/1",
        "/etc/passwd",
        "%2e%2e/",
        "maps/" + "9" * 400,
        "labels-a.csv",
        "assets/annotate.js",
        "favicon.ico",
        "maps/١",
    ],
)
def test_no_path_leads_to_a_file(server, asked):
    text = f"GET {path_of(server)}".encode() + asked.encode() + b" HTTP/1.0\r\n"
    text += f"Host: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
    answer = raw(server, text.decode("latin-1"))
    assert answer.split(b" ", 2)[1] == b"404"
    assert answer.split(b"\r\n\r\n")[1] == b"there is no such map\n"


def test_a_request_of_the_oldest_kind_names_no_host_and_gets_nothing(server):
    assert raw(server, f"GET {path_of(server)}\r\n\r\n") == b"this server has another name\n"


@pytest.mark.parametrize("text", ["\r\n\r\n", "x\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9\r\n\r\n"])
def test_what_is_no_request_does_no_harm(server, text, capfd):
    raw(server, text)
    assert ask(server, path_of(server))[0] == 200
    assert capfd.readouterr() == ("", "")


# --- around it --------------------------------------------------------------------------------


def test_a_damaged_file_of_labels_is_told_where_it_is_damaged(session, serve):
    with serve(session) as server:
        session.label_file("a").write_text("0,block\nwhat\n")
        status, _, body = ask(server, path_of(server))
        assert status == 500
        assert b"labels-a.csv:2: found 'what'" in body
        assert ask(server, path_of(server, "maps/0"))[0] == 200
    with pytest.raises(InputError, match=r"labels-a\.csv:2"), serve(session):
        pass


def test_a_taken_port_is_told_plainly(session, serve):
    with serve(session) as server:
        port = server.server_port
        with pytest.raises(InputError, match=f"cannot serve on port {port} "):
            AnnotationServer(session, "b", port=port)


def test_a_label_that_cannot_be_kept_is_not_answered_as_kept(server, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headscope.experiments.map_classifier.annotation_session.os.fsync", full)
    status, _, body = ask(server, path_of(server, "label"), method="POST", body=GOOD, headers=JSON)
    assert status == 500
    assert b"No space left on device" in body


def test_the_labels_of_many_connections_are_all_kept(tmp_path, serve):
    from concurrent.futures import ThreadPoolExecutor

    session = Session.create(tmp_path / "many", make_drawn(40))
    with serve(session) as server, ThreadPoolExecutor(8) as pool:
        bodies = [json.dumps({"number": n, "label": "block"}) for n in range(40)]
        path = path_of(server, "label")
        answers = pool.map(
            lambda body: ask(server, path, method="POST", body=body, headers=JSON)[0], bodies
        )
        assert set(answers) == {200}
    assert session.labels("a") == dict.fromkeys(range(40), "block")
