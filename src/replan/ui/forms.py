"""What a form of a page sent: its fields and files, if it is a form of this page."""

import asyncio
import base64
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from urllib.parse import parse_qsl

from starlette.requests import Request

from replan.server.problems import RefusedError
from replan.server.request_body import read_bytes, too_slow
from replan.ui.entering import form_token
from replan.ui.site import Site

_LARGEST = 2_000_000
_MOST = 1_000


async def read_form(site: Site, request: Request) -> dict[str, str]:
    """The fields of a form that one of our pages made for this browser.

    Raises:
        RefusedError: It is no such form, or too large.
    """
    return check_form(site, request, await read_fields(site, request))


def check_form(site: Site, request: Request, fields: dict[str, str]) -> dict[str, str]:
    """The fields of a form without its token, which must be that of this browser.

    Raises:
        RefusedError: It is another one, or there is none.
    """
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
    body = bytearray()
    try:
        async with asyncio.timeout(site.served.body_seconds):
            async for part in request.stream():
                body += part
                if len(body) > _LARGEST:
                    detail = f"The form has more than {_LARGEST:,} bytes. Send less."
                    raise RefusedError(413, "too_large", detail)
    except TimeoutError:
        raise too_slow(site.served.body_seconds) from None
    pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST)
    # Browsers send lines with carriage returns.
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


_MOST_PARTS = 100


@dataclass(frozen=True)
class Part:
    """A field of a form, or a file."""

    name: str
    filename: str | None  # None for a field
    content: bytes


async def read_upload(site: Site, request: Request) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The fields of a form that a page made for this browser, and its files as the server has them.

    Raises:
        RefusedError: It is no such form, too large or too slow.
    """
    body = await read_bytes(request, site.served.body_seconds)
    parts = list(read_parts(body, request.headers.get("content-type", "")))
    fields = {
        each.name: each.content.decode("utf-8", "replace").replace("\r\n", "\n")
        for each in parts
        if each.filename is None
    }
    files = [
        {"name": each.filename, "content": base64.b64encode(each.content).decode()}
        for each in parts
        if each.filename  # a form sends a part without a name where no file was chosen
    ]
    return check_form(site, request, fields), files


def read_parts(body: bytes, content_type: str) -> Iterator[Part]:
    """Read a body of multipart/form-data.

    Raises:
        RefusedError: It is not one, or is cut off.
    """
    boundary = _param(content_type, "boundary")
    if not content_type.lower().startswith("multipart/form-data") or not boundary:
        raise RefusedError(415, "no_form", "This is not a form with files. Send it from its page.")
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("utf-8", "replace"))
    if len(pieces) > _MOST_PARTS:
        detail = f"The form has more than {_MOST_PARTS} parts. Send fewer."
        raise RefusedError(413, "too_large", detail)
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return
        head, sign, content = piece.partition(b"\r\n\r\n")
        disposition = _disposition(head.decode("utf-8", "replace"))
        name = _param(disposition, "name")
        if not sign or name is None:
            break
        yield Part(name, _param(disposition, "filename"), content)
    raise RefusedError(400, "half_request", "The form was cut off. Send it again.")


def _disposition(head: str) -> str:
    lines = (line.partition(":") for line in head.split("\r\n"))
    return next((value for name, _, value in lines if name.lower() == "content-disposition"), "")


def _param(header: str, name: str) -> str | None:
    message = Message()
    message["X"] = " ".join(header.split())
    found = message.get_param(name, header="X")
    # Browsers write a quotation mark in a name so.
    return found.replace("%22", '"') if isinstance(found, str) else None
