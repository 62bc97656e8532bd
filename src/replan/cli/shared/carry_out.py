"""Carry out one order of the terminal and show how it went."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

from replan.assembly.runtime import open_runtime
from replan.base.errors import ConfigurationError, ReplanError, UsageError
from replan.base.own_loop import run_in_own_loop
from replan.base.texts.signs import harmless
from replan.cli.shared.process import INCOMPLETE
from replan.cli.shared.session import Session
from replan.cli.shared.site import Site
from replan.cli.user_files.log_file import logging_to
from replan.cli.user_files.order_signature import sign, user_name
from replan.cli.user_files.orders import Order, order_on_record, prepare
from replan.cli.user_files.plan_file import PlanFile
from replan.cli.user_files.storage_location import open_location, short
from replan.plan.markdown.seal import origin_of
from replan.ports.built_in import built_in_models
from replan.ports.storage import Storage
from replan.runs.calling.compiled import Graph, services_in
from replan.runs.calling.given_input import checked_input
from replan.runs.result import RunResult
from replan.runs.run_at_work import Following
from replan.runs.service import Runtime
from replan.state.limits import RunSettings
from replan.traces.option import Traces
from replan.traces.otlp import (
    are_traces_asked_for,
    check_endpoint,
    content_asked_for,
    endpoint,
    send_traces,
)
from replan.views.live.notices import traces_notice, tracing_notice


def carry_out(order: Order, site: Site) -> int:
    """Run an order until it ends, asks or is stopped, and return the exit code."""
    return exit_code_of(lambda: _run_order(order, site), site)


def exit_code_of(work: Callable[[], Coroutine[Any, Any, int]], site: Site) -> int:
    """Do the work of a command about stored runs."""
    with logging_to(site.log_file):
        return run_in_own_loop(work)


async def _run_order(order: Order, site: Site) -> int:
    run_id = uuid4().hex
    async with (
        open_location(site.location) as storage,
        open_at_terminal(run_id, order, storage, site) as (runtime, introduce),
    ):
        run_input = checked_input(runtime.graph, order.input)
        order = _with_user(order, runtime.graph)
        session, record = introduce(), order_on_record(order)

        async def begin(following: Following) -> RunResult:
            run = await runtime.start(
                run_input,
                run_id=run_id,
                settings=order.settings,
                title=order.title,
                labels=order.labels,
                order=sign(record, run_id) if site.location.outlives else record,
                **following,
            )
            return await run

        return await exit_code_of_run(session.follow_run(begin), run_id, site)


def _with_user(order: Order, graph: Graph) -> Order:
    """Use the login name as the user of a team that remembers, unless another user is named."""
    settings = order.settings or RunSettings()
    if settings.user or not services_in(graph).remembers or services_in(graph).settings.user:
        return order
    return order.replace(settings=settings.replace(user=user_name()))


@asynccontextmanager
async def open_at_terminal(
    run_id: str, order: Order, storage: Storage, site: Site
) -> AsyncGenerator[tuple[Runtime, Callable[..., Session]]]:
    """Open the runtime of a run; yield it with what makes the `Session` that follows a run."""
    told_elsewhere = [tracing_notice(site.environment)]

    def introduce(
        *,
        is_known: bool = False,
        run_id: str = run_id,
        order: Order = order,
    ) -> Session:
        plan_file = PlanFile(order.plan_out, origin_of(order.plan or ""))
        reporter = site.reporter(ready.workspace)
        site.complain(*filter(None, told_elsewhere))
        if site.shows_all:
            if site.location.outlives:
                site.complain(f"run {short(run_id)}")
            built_in = built_in_models().get(str(ready.model))
            if built_in is not None and not is_known:
                reporter.say(built_in.notice)
        return Session(run_id, runtime, site, reporter, plan_file)

    with open_traces_asked_for(site) as (traces, notice):
        told_elsewhere.append(notice)
        ready = prepare(order, site.environment, traces, storage=storage)
        async with open_runtime(ready.graph, storage=storage, grace=site.grace) as runtime:
            yield runtime, introduce


@contextmanager
def open_traces_asked_for(site: Site) -> Generator[tuple[Traces | None, str]]:
    """Open the traces that OpenTelemetry's variables ask for, and return the line that says so."""
    environment, missed = site.environment, list[str]()
    if not are_traces_asked_for(environment):
        yield None, ""
        return
    check_endpoint(environment)
    content = content_asked_for(environment)
    with ExitStack() as stack:
        try:
            traces = stack.enter_context(send_traces(content=content, missed=missed.append))
        except ConfigurationError as error:
            # The variables may be there for other programs.
            notice = f"no traces: {harmless(str(error))}"
            traces = None
        else:
            notice = traces_notice(endpoint(environment), content=content)
        yield traces, notice
    if missed:
        where = harmless(endpoint(environment))
        site.complain(f"warning: not all traces were received by {where}: {harmless(missed[-1])}")


async def exit_code_of_run(work: Coroutine[Any, Any, int], run_id: str, site: Site) -> int:
    """Return the exit code of a run; one that is cut off says why, and how to continue."""
    try:
        return await work
    except UsageError:
        raise
    except ReplanError as error:
        go_on = [f"continue with: {site.resume(run_id)}"] if site.location.outlives else []
        site.complain(f"replan: {harmless(str(error))}", *go_on)
        return INCOMPLETE
