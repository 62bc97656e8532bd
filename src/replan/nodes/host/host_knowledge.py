"""The knowledge that the host answers from."""

from functools import partial

from replan.base.errors import LimitReachedError
from replan.base.langgraph_inside.tasks import with_handlers
from replan.knowledge.search import Search
from replan.nodes.host.host_call import HostCall
from replan.specialists.services import HOST
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.knowledge import Knowledge, RAGOptions, knowledge_options

# It does not know yet whether it answers or plans, so no model reads it first.
_AS_FOUND = RAGOptions(mode="stuff", use_summary=False)


async def knowledge_of_request(state: EnhancedState, call: HostCall) -> Knowledge | None:
    """What the team's knowledge has on the request; None if nothing is searched or found."""
    retriever, settings = call.services.knowledge, settings_of(state)
    if retriever is None:
        return None
    options = knowledge_options(call.services.rag[HOST], settings.rag)
    if options.mode == "none":
        return None
    meter = call.meter()
    search = Search(
        retriever=retriever,
        options=knowledge_options(options, _AS_FOUND),
        task=call.request,
        tenant=settings.tenant,
        # What a retriever calls, such as a model for embeddings, is counted and charged.
        config=with_handlers(call.config, meter.handlers, tags=["nostream"]),
        timed=meter,
        ask=partial(call.ask, call.services.models.answering),
    )
    try:
        async with meter:
            knowledge = await search.run(call.emitter, node="think")
    except LimitReachedError:
        # The calls of the host report it.
        return None
    finally:
        call.used += meter.count
    return knowledge if knowledge is not None and knowledge.sources else None
