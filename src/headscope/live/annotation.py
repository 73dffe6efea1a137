"""Serves the maps of a labelling session to one annotator, on this machine alone.

The page holds no word of what the maps are of. The server gives out this page and the maps alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from headscope.analyses.patterns import CLASSES
from headscope.analyses.patterns.classes import NAMES
from headscope.core.whole_file import held
from headscope.errors import InputError
from headscope.experiments.map_classifier.annotation_session import Map, Session
from headscope.experiments.map_classifier.label_sheets import shades
from headscope.live.access import LOOPBACK, OWN
from headscope.live.refusals import BYTES, HANDLERS
from headscope.live.requests import json_bytes, json_object
from headscope.live.server import Application, LiveServer, bound
from headscope.page.shell import asset, content_policy, island, style_of, template

MOST_BYTES = 1000  # of a request; a label takes fewer than 60
INSTEAD = "go on in its page, end it, or give another --annotator"
PACKAGE = "headscope.live"


@dataclass(frozen=True)
class AnnotationApp(Application):
    """The application in which one annotator labels the maps of a session."""

    session: Session
    annotator: str

    def starlette(self) -> Starlette:
        """The routes, without access control."""
        routes = [
            Route("/", self.page),
            Route("/maps/{number}", self.map),
            Route("/label", self.label, methods=["POST"]),
            Route("/undo", self.undo, methods=["POST"]),
        ]
        return Starlette(routes=routes, exception_handlers=HANDLERS)

    async def page(self, _: Request) -> Response:
        """The page, with the labels so far."""
        page, policy = annotation_page(self.session, self.annotator)
        return HTMLResponse(page, headers={"Content-Security-Policy": f"{policy}; {OWN}"})

    async def map(self, request: Request) -> Response:
        """[query, key] a map in bytes."""
        number = request.path_params["number"]
        if not re.fullmatch("[0-9]{1,9}", number) or int(number) >= len(self.session):
            raise HTTPException(404)
        shown = picture(self.session.map(int(number)))
        return Response(shown.tobytes(), media_type=BYTES)

    async def label(self, request: Request) -> Response:
        """{"number", "label"} is kept before it is answered."""
        fields = json_object(await json_bytes(request, MOST_BYTES), "number", "label")
        number, label = fields.get("number"), fields.get("label")
        if type(number) is not int or label not in NAMES:
            raise InputError("found no label; wanted a number and one of the classes")
        self.session.label(self.annotator, number, label)
        return JSONResponse({"number": number, "label": label})

    async def undo(self, request: Request) -> Response:
        """{"number"} of the map whose label was taken back; None where there was none."""
        json_object(await json_bytes(request, MOST_BYTES))
        return JSONResponse({"number": self.session.undo(self.annotator)})


@contextmanager
def annotation_server(session: Session, annotator: str, *, port: int = 0) -> Iterator[LiveServer]:
    """Inside the context the labels are this annotator's alone; `run` of the server serves them.

    port    the next one that is free, if it is in use; 0 for any
    raises  InputError for a name, a file or a port that will not do; RunFolderError where another
            server has the annotator
    """
    session.labels(annotator)
    with (
        held(session.label_file(annotator), instead=INSTEAD),
        closing(bound(LOOPBACK[0], port)) as own,
    ):
        yield LiveServer(AnnotationApp(session, annotator), own)


def picture(weights: Map) -> npt.NDArray[np.uint8]:
    """[query, key] `shades` from 0 to 255."""
    return (shades(weights) * 255).round().astype(np.uint8)


def annotation_page(session: Session, annotator: str) -> tuple[bytes, str]:
    """The page and its policy; it holds no word of what the maps are of.

    raises  InputError if the labels so far cannot be read
    """
    kept = session.labels(annotator)
    style, script = style_of("annotate.css", package=PACKAGE), asset("annotate.js", PACKAGE)
    policy = content_policy(style=style, script=script) + "; connect-src 'self'"
    data = {
        "sizes": session.sizes,
        "boundaries": [session.boundary(n) for n in range(len(session))],
        "kinds": [
            [] if (kinds := session.kinds(n)) is None else kinds.tolist()
            for n in range(len(session))
        ],
        "labels": [kept.get(n) for n in range(len(session))],
        "classes": [{"key": c.key, "name": c.name, "title": c.title} for c in CLASSES],
    }
    page = template("annotate.html.j2", PACKAGE).render(
        annotator=annotator,
        count=len(session),
        classes=CLASSES,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        island=island(data),
    )
    return page.encode("utf-8"), policy
