"""Is the page of `hs.serve` that of the command, in a frame, behind a proxy, until the end?"""

from __future__ import annotations

import subprocess
import sys
import threading
import types
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import HTTPError

import httpx
import pytest
import transformers
import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

import headscope as hs
from commands import PATIENCE
from experiments.circuits.made import tokenizer
from headscope.errors import HeadscopeError, InputError
from headscope.live.from_python import proxy_root
from headscope.live.open_model import open_again, open_model
from headscope.live.server import bound
from headscope.model.checkpoint import quietly
from headscope.run.settings import Settings
from live.conftest import LOADING
from tasks.made import MOOD, checkpoint

SCRIPT = """
import sys, urllib.request
import headscope as hs
page = hs.serve(sys.argv[1], port=0)
print(urllib.request.urlopen(page.address).status)
"""


def asked(address: str, **headers: str) -> tuple[int, str, str]:
    """Status, content and policy of an address."""
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            policy = answer.headers["Content-Security-Policy"]
            return answer.status, answer.read().decode(), policy
    except HTTPError as error:
        with error:
            return error.code, error.read().decode(), ""


@contextmanager
def notebook_behind_a_proxy():
    """A server whose page / holds what was shown, and that passes /user/ann/proxy/PORT/… on."""
    shown: list[str] = []

    async def notebook(_):
        return HTMLResponse(f"<body style='background:#eee'>{shown[0]}")

    async def passed_on(request):
        port, rest = request.path_params["port"], request.path_params["rest"]
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            answer = await client.request(
                request.method,
                f"http://127.0.0.1:{port}/{rest}",
                headers={**request.headers, "host": "hub.example.org"},
                content=await request.body(),
            )
        kept = ("content-type", "content-security-policy")
        headers = {name: answer.headers[name] for name in kept if name in answer.headers}
        return Response(answer.content, answer.status_code, headers)

    passing = Route("/user/ann/proxy/{port:int}/{rest:path}", passed_on, methods=["GET", "POST"])
    app = Starlette(routes=[Route("/", notebook), passing])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    with closing(bound("127.0.0.1", 0)) as own:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{own.getsockname()[1]}/", shown
        server.should_exit = True
        thread.join()


def test_a_notebook_shows_the_page_in_a_frame_behind_the_proxy_of_its_hub(
    decoder_place, monkeypatch, watched
):
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ann/")
    with (
        notebook_behind_a_proxy() as (address, shown),
        hs.serve(decoder_place, "cat dog", port=0) as served,
    ):
        assert served.address.startswith("/user/ann/proxy/")
        shown.append(served._repr_html_())
        page = watched(address, within=(f"{address}user/ann/proxy/",))
        frame = page.frame_locator("iframe[title='model, live']")
        frame.locator("body[data-answers='1']").wait_for()
        frame.locator("#text").fill("dog cat dog")
        frame.locator("body[data-answers='2']").wait_for()
        assert frame.locator("#cells canvas").count()
        assert frame.locator("html").get_attribute("data-scheme") == "light"
        page.evaluate("document.body.style = 'background:#111;color:#eee'")
        frame.locator("html[data-scheme=dark]").wait_for(state="attached")


def test_behind_a_proxy_the_token_lets_in_by_any_name_and_nothing_else_does(decoder_place):
    other = {"Host": "hub.example.org", "Origin": "https://hub.example.org"}
    with hs.serve(decoder_place, port=0, proxy="http://127.0.0.1:{port}") as served:
        assert asked(served.address, **other)[0] == 200
        assert asked(served.address.rpartition("/")[0][:-1] + "/", **other)[0] == 403
    with hs.serve(decoder_place, port=0) as served:
        status, page, policy = asked(served.address)
        assert status == 200
        assert "<title>" in page
        assert "default-src 'none'" in policy
        assert "frame-ancestors" not in policy  # a notebook's name is not known
        assert asked(served.address, **other)[0] == 403


@pytest.mark.parametrize(
    ("given", "hub", "wanted"),
    [
        (None, "", ""),
        (None, "/user/ann/", "/user/ann/proxy/81"),
        ("https://a.org/{port}/", "/user/ann/", "https://a.org/81"),
    ],
)
def test_the_address_is_where_a_browser_reaches_it(given, hub, wanted, monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", hub)
    assert proxy_root(given, 81) == wanted


def test_colab_is_asked_for_the_address(monkeypatch):
    output = types.ModuleType("google.colab.output")
    output.eval_js = lambda code: {"google.colab.kernel.proxyPort(81)": "https://c.org/"}[code]
    for name, module in {"google.colab": types.ModuleType("c"), output.__name__: output}.items():
        monkeypatch.setitem(sys.modules, name, module)
    assert proxy_root(None, 81) == "https://c.org"


def test_a_loaded_model_answers_as_its_folder_does(decoder_place, tmp_path):
    with quietly():
        network = transformers.AutoModelForCausalLM.from_pretrained(decoder_place)
    loaded = [hs.load(decoder_place), hs.load(network, tokenizer=tokenizer())]
    classes = checkpoint(tmp_path / "classes", head=MOOD)
    for place, models in ((decoder_place, loaded), (classes, [hs.load(classes)])):
        wanted = open_model(str(place), **LOADING)
        for model in models:
            got = open_again(model)
            assert (got.answers, got.classes) == (wanted.answers, wanted.classes)
            assert got.model.sha256 in (wanted.model.sha256, model.sha256)


def test_a_run_is_served_with_its_pages(short):
    for given in (short, short.path):
        with hs.serve(given, port=0) as served:
            assert asked(f"{served.address}run/report.html")[0] == 200


def test_what_cannot_be_served_is_refused(tiny):
    run = hs.atlas(tiny, ["cat dog cat"], settings=Settings(analyses=("entropy",)))
    with pytest.raises(InputError, match="found a run in memory; wanted one in a folder"):
        hs.serve(run)
    with pytest.raises(InputError, match=r"proxy is '/p/'; wanted an address with \{port\}"):
        hs.serve(tiny, proxy="/p/")


def test_a_script_that_serves_ends_by_itself(decoder_place: Path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(decoder_place)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr


def test_without_the_packages_the_command_that_installs_them_is_told(monkeypatch):
    code = (
        "import headscope.live.from_python, sys; print({'starlette', 'uvicorn'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"  # so that it can be imported without
    monkeypatch.setattr("headscope.live.find_spec", lambda name: None)
    with pytest.raises(HeadscopeError, match=r"starlette and uvicorn[\s\S]*headscope\[serve\]"):
        hs.serve("demo")


def test_it_can_be_closed_twice(decoder_place):
    served = hs.serve(decoder_place, port=0)
    served.close()
    served.close()
    with pytest.raises(OSError, match="refused"):
        asked(served.address)
