"""What do all tests share? The data beside the checkout, models, two runs, and a browser."""

import fcntl
import gc
import os
import shutil
import signal
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from commands import PATIENCE

# The same examples in every run, however slow the machine.
settings.load_profile("ci")

# The shell, without a window's own pages, takes a third of the time for each page.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
SHARED = Path(__file__).resolve().parents[2] / "shared"
# `make light` runs without it what can be run so.
TORCH = find_spec("torch") is not None
# Read as triton is first imported, by torch; =0 runs the kernels of long inputs on a GPU.
os.environ.setdefault("TRITON_INTERPRET", "1")


def pytest_configure():
    """No garbage comes of importing and collecting: looking for some took a third of that time.

    What runs behind a shell's & ignores Ctrl-C, and so would all that tests start.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish(session):
    """What is loaded by now stays: looking through it for garbage took a tenth of the time.

    What tests make is looked through after so many objects, a figure or two, not after 700.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(30_000)
    if not TORCH:
        return
    _compute_less()
    modules = {item.module for item in session.items if hasattr(item, "module")}
    if any(hasattr(one, name) for one in modules for name in ("forked", "called_apart")):
        from forked import begin

        begin()


def _compute_less():
    """In commands that are forked from here, too: their results are to be equal."""
    from headscope.analyses.divergence import clustering
    from headscope.model import weights
    from headscope.run import compute, machine_choices

    # Every command hashes the weights of its model: a hundred times those of the demo.
    hashed = cache(lambda file, _state, digest=weights.file_sha256: digest(file))
    weights.file_sha256 = lambda file: hashed(file, _state_of(file))
    # Before every run, six passes of its largest batch tell which linear maps are faster.
    choose = compute.choose
    compute.choose = lambda *of, requested: choose(
        *of, requested="stock" if requested == "auto" else requested
    )
    # And nothing of that is kept in the cache folder of who runs the tests.
    compute.chosen_here = lambda _, of: machine_choices.LinearsChoice(of("auto"), "timed now")
    # That clusters are stable is told by a tenth of a run's time: as well by few draws of heads.
    clustering.DRAWS = 5


def _state_of(file: Path) -> tuple[int, ...]:
    """What changes if a file is written anew."""
    stat = file.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@pytest.fixture(scope="module")
def all_draws():
    """For tests that look at how stable clusters are."""
    from headscope.analyses.divergence import clustering

    few, clustering.DRAWS = clustering.DRAWS, 50
    yield
    clustering.DRAWS = few


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora, models and oracles beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("needs the folder 'shared' (real corpora, models, oracles) beside the checkout")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def coarse_pictures():
    """A fifth of a report's time is spent on dots that no test looks at."""
    from headscope.draw import saving

    fine, saving.RESOLUTION = saving.RESOLUTION, 60
    yield fine
    saving.RESOLUTION = fine


@pytest.fixture(scope="session", autouse=True)
def no_control():
    """Our models are random: held against a control, nothing would be said of them.

    Tests of the control ask for one.
    """
    if not TORCH:
        yield "none"
        return
    from headscope.cli.atlas import atlas_command
    from headscope.cli.compare import compare_command
    from headscope.cli.evolve import evolve_command
    from headscope.cli.reproduce import reproduce_command
    from headscope.cli.zoo import zoo_command
    from headscope.experiments.comparison.compare import CompareRequest
    from headscope.experiments.evolution.evolve import EvolveRequest
    from headscope.papers.zoo.zoo import ZooRequest
    from headscope.run.atlas import AtlasRequest

    commands = (atlas_command, compare_command, evolve_command, zoo_command, reproduce_command)
    options = [next(p for p in command.params if p.name == "control") for command in commands]
    kinds = (AtlasRequest, CompareRequest, EvolveRequest, ZooRequest)
    calls = [kind.__init__.__kwdefaults__ for kind in kinds]
    usual = {option.default for option in options} | {defaults["control"] for defaults in calls}
    for option in options:
        option.default = "none"
    for defaults in calls:
        defaults["control"] = "none"
    (one,) = usual  # all have the same
    yield one
    for option in options:
        option.default = one
    for defaults in calls:
        defaults["control"] = one


@pytest.fixture(scope="session", autouse=True)
def compiled_loops(request, tmp_path_factory):
    """In a fresh clone, each of two processes compiles half of the loops and reads the other half.

    Else both would compile all of them, at the same time.
    """
    first, second = ("patterns", "divergence"), ("norms", "mixing", "flow", "neurons", "distance")
    half = {"gw0": first, "gw1": second}.get(os.environ.get("PYTEST_XDIST_WORKER", ""))
    if not TORCH or half is None:
        return
    from headscope.model import kernels

    if not any(Path(kernels.__file__).parent.glob("__pycache__/kernels.*.nbi")):
        tiny = request.getfixturevalue("tiny")
        run_of(tiny, tmp_path_factory.mktemp("compiled") / "run", analyses=half)


@pytest.fixture
def fine_pictures(coarse_pictures, monkeypatch):
    """For tests that look at the dots."""
    monkeypatch.setattr("headscope.draw.saving.RESOLUTION", coarse_pictures)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> Callable[[str, Callable[[], str]], str]:
    """Makes a text under a name in one of the processes that run tests; the others read it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def text(name: str, make: Callable[[], str]) -> str:
        with open(base / name, "a+", encoding="utf-8", newline="") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if not (found := file.read()):
                found = make()
                file.write(found)
        return found

    return text


@pytest.fixture(scope="session")
def demo():
    """The demo model, loaded once."""
    pytest.importorskip("torch")
    import headscope

    return headscope.load("demo")


@pytest.fixture(scope="session")
def tiny_place(tmp_path_factory) -> Path:
    """The folder of a BERT of two layers of four heads: random weights, the demo's tokenizer."""
    pytest.importorskip("torch")
    from made_models import small_bert

    return small_bert(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="session")
def tiny(tiny_place):
    """That model, loaded once."""
    import headscope

    return headscope.load(str(tiny_place))


@pytest.fixture(scope="session")
def whole(tiny, tmp_path_factory):
    """A finished run of all analyses on five documents, made in one go."""
    return run_of(tiny, tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="session")
def short(tiny, tmp_path_factory):
    """The same of two analyses: for what concerns the run, whatever it computes."""
    return run_of(tiny, tmp_path_factory.mktemp("short") / "run", analyses=("surface", "entropy"))


def run_of(model, folder, **more):
    import headscope as hs
    from commands import WHOLE

    execution = hs.Execution(linears="stock", threads=1, keep_shards=True)
    return hs.atlas(model, hs.demo_corpus(), output=folder, **WHOLE, **more, execution=execution)


def without(what: str) -> NoReturn:
    """Skips a test that needs a browser; fails it where a browser is a must, as in `.ci/run`."""
    if os.environ.get("HEADSCOPE_BROWSER") == "required":
        pytest.fail(f"{what}; here tests with a browser may not be skipped")
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser():
    """A real Chromium, for all tests of a process; each has a context of its own."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        without("playwright is not installed")
    if CHROMIUM is None:
        without("no chromium on this machine")
    wait = 1000 * PATIENCE
    with sync_playwright() as player:
        running = player.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=wait
        )
        for name in ("new_context", "new_page"):
            setattr(running, name, _patient(getattr(running, name), wait))
        yield running
        running.close()


def _patient(make, wait):
    """Makes contexts, or pages, that wait for so many milliseconds: of a busy machine."""

    def patiently(**options):
        made = make(**options)
        made.set_default_timeout(wait)
        return made

    return patiently


@pytest.fixture(scope="session")
def free_pages(browser):
    """Opens pages, new or left by other tests: a new one takes a quarter more time."""
    free = defaultdict(list)

    @contextmanager
    def page_of(**options):
        pages = free[repr(sorted(options.items()))]
        page = pages.pop() if pages else browser.new_context(**options).new_page()
        yield page
        page.unroute_all()
        if not page.url.startswith("file:"):  # a page from the disk asks for nothing: it may stay
            page.goto("about:blank")
        page.mouse.move(0, 0)
        pages.append(page)

    return page_of


@pytest.fixture
def watched(free_pages):
    """Opens an address; afterwards, nothing may have been complained of or asked for elsewhere.

    within   what all that is asked for must begin with, if not be the address itself
    closing  is given what leaves the page; by default that is done at the end
    """
    complaints, closers = [], []

    def start(
        address,
        *,
        within=(),
        width=1280,
        height=800,
        color_scheme="light",
        closing=closers.append,
        **options,
    ):
        def asked(request):
            own = request.url.partition("#")[0] == address.partition("#")[0]
            if not (own or request.url.startswith(tuple(within))):
                complaints.append(request.url)

        leaving = ExitStack()
        closing(leaving.close)
        page = leaving.enter_context(free_pages(**options))
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme)
        for event, heard in {
            "console": lambda message: complaints.append(message.text),
            "pageerror": lambda error: complaints.append(str(error)),
            "dialog": lambda dialog: complaints.append(dialog.message),
            "request": asked,
        }.items():
            page.on(event, heard)
            leaving.callback(page.remove_listener, event, heard)
        if page.url.partition("#")[0] == address.partition("#")[0]:
            page.goto("about:blank")  # else what another test did there would stay
        page.goto(address)
        return page

    start.complaints = complaints
    yield start
    for close in closers:
        close()
    assert complaints == []


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe-core: run in a page from outside, so that its policy stays as it is."""
    try:
        return (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
    except ImportError:
        without("axe-playwright-python is not installed")
