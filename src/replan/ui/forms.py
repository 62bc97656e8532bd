"""What a form of a page sent: its fields, if it is a form of this page."""

import asyncio
import hmac
from urllib.parse import parse_qsl

from starlette.requests import Request

from replan.server.problems import RefusedError
from replan.server.request_body import too_slow
from replan.ui.entering import form_token
from replan.ui.site import Site

_LARGEST = 2_000_000
_MOST = 1_000


async def form_of(site: Site, request: Request) -> dict[str, str]:
    """The fields of a form that one of our pages made for this browser.

    Raises:
        RefusedError: It is no such form, or too large.
    """
    return checked(site, request, await fields_of(site, request))


def checked(site: Site, request: Request, fields: dict[str, str]) -> dict[str, str]:
    """The fields of a form without its token, which must be that of this browser.

    Raises:
        RefusedError: It is another one, or there is none.
    """
    expected = form_token(site.entrance.token_in(request.headers))
    if not hmac.compare_digest(
        fields.pop("form", "").encode("utf-8", "replace"), expected.encode()
    ):
        detail = "This form is not from this page. Reload the page, and send it again."
        raise RefusedError(403, "foreign_form", detail)
    return fields


async def fields_of(site: Site, request: Request) -> dict[str, str]:
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
