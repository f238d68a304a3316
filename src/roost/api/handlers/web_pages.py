"""The pages under `/ui/`: open to every client, since they have no data of the cloud in them."""

from __future__ import annotations

from roost.api.http.errors import HttpError
from roost.api.http.requests import Request
from roost.api.http.responses import Response, tagged_response
from roost.api.routing import Route, Success, routes_of
from roost.api.services import Services
from roost.web.files import PAGES, SECURITY_HEADERS, WebFile, page, static_files

_KNOWN = Success("The client has these bytes: `If-None-Match` names their ETag.")


@Route(
    "GET",
    "/ui",
    rule=None,
    summary="Find the pages",
    successes={308: Success("The pages are below `/ui/`.", headers=("location",))},
)
def find_pages(_services: Services, request: Request) -> Response:
    """Redirect a browser to the first page."""
    return Response(308, headers=[("location", request.location("/ui/"))])


@Route(
    "GET",
    "/ui/",
    rule=None,
    summary="Show the first page",
    successes={200: Success("The page.", headers=("etag",), media_type="text/html"), 304: _KNOWN},
)
def show_first_page(services: Services, request: Request) -> Response:
    """The page of the whole cloud. The browser asks the API for all that it shows."""
    return _answer(request, _page(services, ""))


@Route(
    "GET",
    "/ui/{page}",
    rule=None,
    summary="Show a page",
    successes={200: Success("The page.", headers=("etag",), media_type="text/html"), 304: _KNOWN},
    refusals={404: "No page has this name."},
)
def show_page(services: Services, request: Request) -> Response:
    """A page by its name. The browser asks the API for all that it shows."""
    name = request.parameters["page"]
    if name not in PAGES:
        raise HttpError(404, f"No page is called {name[:40]}. The pages begin at /ui/.")
    return _answer(request, _page(services, name))


@Route(
    "GET",
    "/ui/static/{file}",
    rule=None,
    summary="Show a file of the pages",
    successes={200: Success("The file.", headers=("etag",), media_type="*/*"), 304: _KNOWN},
    refusals={404: "The pages have no such file."},
)
def show_page_file(_services: Services, request: Request) -> Response:
    """A script, a style sheet or a picture of the pages."""
    name = request.parameters["file"]
    file = static_files().get(name)
    if file is None:
        raise HttpError(404, f"The pages have no file {name[:40]}. The pages begin at /ui/.")
    return _answer(request, file)


def _page(services: Services, name: str) -> WebFile:
    # With noauth2 every client may do everything, so there is nothing to type.
    return page(name, token="admin" if services.settings.auth_strategy == "noauth2" else "")


def _answer(request: Request, file: WebFile) -> Response:
    response = tagged_response(request, file.body, file.tag, file.media_type)
    response.headers += SECURITY_HEADERS
    return response


ROUTES = routes_of("Operating", find_pages, show_first_page, show_page, show_page_file)
