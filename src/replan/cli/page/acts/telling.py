"""Tell the host of a run at work something."""

from starlette.requests import Request
from starlette.responses import Response

from replan.base.errors import ReplanError
from replan.cli.page.acts.acting import call_for, error_text, form_of_act, refuse_stale, to_run
from replan.cli.page.site import Site
from replan.server.bodies import MessageBody
from replan.server.doors import runs

_OVER = "The run is over: its host hears nothing any more."


async def tell(site: Site, request: Request) -> Response:
    """Ask what the host of a run should know, and tell it."""
    fields, acted = await form_of_act(site, request)
    run, text, problem = acted.reading.run, fields.get("text", ""), ""
    if request.method == "POST":
        try:
            body = MessageBody(text=text.strip() or " ")
            await runs.send_message(call_for(acted.served, request), run.run_id, body)
            return to_run(site, run.run_id)
        except ReplanError as error:
            problem = error_text(error)
    elif run.is_over:
        return refuse_stale(site, request, acted.reading, _OVER)
    status = 422 if problem else 200
    return site.page(request, "message", status, run=run, text=text, problem=problem)
