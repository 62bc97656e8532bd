"""Carry out one order of the terminal and tell how it went."""

import errno
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import uuid4

from replan.calling import check_input
from replan.cli.cells import harmless
from replan.cli.exits import INCOMPLETE, WRONG_USE
from replan.cli.holding import holding
from replan.cli.keeping import now, opened, short
from replan.cli.logs import logging_to
from replan.cli.notices import tracing_notice
from replan.cli.orders import Order, kept, prepared
from replan.cli.plan_file import PlanFile
from replan.cli.session import Case, Session, Site
from replan.cli.signing import signed
from replan.cli.telling import seconds, teller
from replan.errors import ReplanError, UsageError
from replan.own_loop import completed
from replan.plan.markdown.seal import origin_of
from replan.ports.built_in import built_in_models
from replan.ports.run_book import RunRecord
from replan.state.results import Artifact


def carry_out(order: Order, site: Site) -> int:
    """Run an order until it ends, asks or is stopped, and give the exit code."""
    return attempted(lambda: _carried_out(order, site), site)


def attempted(work: Callable[[], Coroutine[Any, Any, int]], site: Site) -> int:
    """Do what concerns kept runs; what goes wrong is one message and an exit code."""
    try:
        with logging_to(site.log_file):
            return completed(work)
    except UsageError as error:
        code, complaint = WRONG_USE, str(error)
    except ReplanError as error:
        code, complaint = INCOMPLETE, str(error)
    except OSError as error:
        # A reader that went away wants no message, and a file that has a name is not the output.
        if error.errno == errno.EPIPE or error.filename is not None:
            raise
        code, complaint = INCOMPLETE, f"The output cannot be written: {error.strerror}."
    site.errors.write(f"replan: {harmless(complaint)}\n")
    return code


async def _carried_out(order: Order, site: Site) -> int:
    plan_file = PlanFile(order.plan_out, origin_of(order.plan or ""))
    async with opened(site.place) as storage:
        case = Case(
            run_id=uuid4().hex,
            order=order,
            ready=prepared(order, site.environment, storage=storage),
            plan_file=plan_file,
            storage=storage,
            site=site,
        )
        check_input(case.ready.graph, order.input)
        with holding(case.run_id):
            await storage.runs.begin(_record_of(case))
            try:
                return await finished(new_session(case).carry_on(order.input), case)
            except UsageError:
                # Nothing was started that anybody could go on with.
                await storage.runs.remove(case.run_id)
                raise


def _record_of(case: Case) -> RunRecord:
    begun, order = now(), kept(case.order)
    return RunRecord(
        run_id=case.run_id,
        thread_id=case.run_id,
        title=case.order.title,
        order=signed(order, case.run_id) if case.site.place.outlives else order,
        started_at=begun,
        updated_at=begun,
        labels=case.order.labels,
    )


def new_session(case: Case, made: Sequence[Artifact] = (), *, is_known: bool = False) -> Session:
    """Introduce a run, and prepare to tell it.

    Args:
        case: The run.
        made: The files that it made before this process.
        is_known: Whether it was introduced before.
    """
    site = case.site
    told = teller(
        site.manner,
        site.output,
        site.errors,
        workspace=case.ready.workspace,
        terminal=site.environment.get("TERM", ""),
        clock=seconds,
        made=made,
    )
    if traced := tracing_notice(site.environment):
        site.errors.write(f"{traced}\n")
        site.errors.flush()
    if site.tells_all:
        if site.place.outlives:
            site.errors.write(f"run {short(case.run_id)}\n")
            site.errors.flush()
        built_in = built_in_models().get(str(case.ready.model))
        if built_in is not None and not is_known:
            told.say(built_in.notice)
    return Session(case, told)


async def finished(work: Coroutine[Any, Any, int], case: Case) -> int:
    """Give the exit code of a run; one that breaks off says why, and how to go on.

    Raises:
        UsageError: The input cannot be used.
    """
    try:
        return await work
    except UsageError:
        raise
    except ReplanError as error:
        site = case.site
        site.errors.write(f"replan: {harmless(str(error))}\n")
        if site.place.outlives:
            site.errors.write(f"go on with: {site.resume(case.run_id)}\n")
        return INCOMPLETE
