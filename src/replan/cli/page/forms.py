"""What a form of a page sent: its fields and files, if it is a form of this page."""

import base64
import hmac
from collections.abc import AsyncGenerator
from urllib.parse import parse_qsl

from starlette.datastructures import FormData, Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from replan.cli.page.entering import form_token
from replan.cli.page.site import Site
from replan.server.problems import RefusedError
from replan.server.request_body import read_bytes

_LARGEST = 2_000_000
_MOST = 1_000


async def read_form(site: Site, request: Request) -> dict[str, str]:
    """The fields of a form that one of our pages made for this browser.

    Raises:
        RefusedError: It is no such form, or too large.
    """
    return _checked(site, request, await read_fields(site, request))


def _checked(site: Site, request: Request, fields: dict[str, str]) -> dict[str, str]:
    """The fields of a form without its token, which must be that of this browser."""
    expected = form_token(site.entrance.credential_in(request))
    if not hmac.compare_digest(
        fields.pop("form", "").encode("utf-8", "replace"), expected.encode()
    ):
        detail = "This form is not from this page. Reload the page, and send it again."
        raise RefusedError(403, "foreign_form", detail)
    return fields


async def read_fields(site: Site, request: Request) -> dict[str, str]:
    """The fields of any form; if a name is there twice, its last value.

    Raises:
        RefusedError: It is too large, or too slow.
    """
    body = await read_bytes(request, site.served.body_seconds, _LARGEST)
    pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST)
    # Browsers send lines with carriage returns.
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


_MOST_PARTS = 100


async def read_upload(site: Site, request: Request) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The fields of a form that a page made for this browser, and its files as the server has them.

    Raises:
        RefusedError: It is no such form, too large or too slow.
    """
    body = await read_bytes(request, site.served.body_seconds)
    fields, files = dict[str, str](), list[dict[str, str]]()
    form = await _form_in(body, request.headers)
    try:
        for field, value in form.multi_items():
            if isinstance(value, str):
                fields[field] = value.replace("\r\n", "\n")
            elif value.filename:  # a form sends a part without a name where no file was chosen
                content = base64.b64encode(await value.read()).decode()
                # Browsers write a quotation mark in a name so.
                files.append({"name": value.filename.replace("%22", '"'), "content": content})
    finally:
        await form.close()
    return _checked(site, request, fields), files


async def _form_in(body: bytes, headers: Headers) -> FormData:
    if not headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise RefusedError(415, "no_form", "This is not a form with files. Send it from its page.")
    if not body.rstrip(b"\r\n").endswith(b"--"):
        raise RefusedError(400, "half_request", "The form was cut off. Send it again.")

    async def stream() -> AsyncGenerator[bytes]:
        yield body

    parser = MultiPartParser(
        headers, stream(), max_files=_MOST_PARTS, max_fields=_MOST_PARTS, max_part_size=len(body)
    )
    # A file of a form is in memory already.
    parser.spool_max_size = len(body) + 1
    try:
        return await parser.parse()
    except (MultiPartException, KeyError) as error:
        detail = f"The form cannot be read ({error}). Send it again from its page."
        raise RefusedError(400, "bad_form", detail) from error
