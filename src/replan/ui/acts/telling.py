"""Tell the host of a run at work something."""

from starlette.requests import Request
from starlette.responses import Response

from replan.errors import ReplanError
from replan.server.bodies import MessageBody
from replan.server.doors import runs
from replan.ui.acts.acting import (
    Acted,
    call_for,
    error_text,
    form_of_act,
    refuse_stale,
    run_to_act_on,
    to_run,
)
from replan.ui.site import Site

_OVER = "The run is over: its host hears nothing any more."


async def ask_message(site: Site, request: Request) -> Response:
    """Return the form for what the host should know."""
    acted = await run_to_act_on(site, request)
    if acted.reading.run.is_over:
        return refuse_stale(site, request, acted.reading, _OVER)
    return _form(site, request, acted)


def _form(
    site: Site, request: Request, acted: Acted, text: str = "", problem: str = ""
) -> Response:
    status = 422 if problem else 200
    return site.page(request, "message", status, run=acted.reading.run, text=text, problem=problem)


async def tell(site: Site, request: Request) -> Response:
    """Tell the host of a run what was typed."""
    fields, acted = await form_of_act(site, request)
    text = fields.get("text", "")
    try:
        body = MessageBody(text=text.strip() or " ")
        await runs.send_message(call_for(acted.served, request), acted.record.run_id, body)
    except ReplanError as error:
        return _form(site, request, acted, text, error_text(error))
    return to_run(site, acted.record.run_id)
