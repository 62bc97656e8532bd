"""A specialist that is a chat model: what it is asked, and how its reply is read."""

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import HumanMessage

from replan.models.chat import Chat
from replan.specialists.prompted import PromptedSpecialist
from replan.state.team import SpecialistCard
from replan.testing import ScriptedModel

CARD = SpecialistCard(name="analyst", intended_use="Compares things.")


def of(model, **options):
    return PromptedSpecialist(card=CARD, answer=Chat(model).reply, **options)


async def test_a_reply_is_the_result_and_keeps_the_id_of_what_was_streamed(context):
    streamed = []

    class Ids(AsyncCallbackHandler):
        async def on_llm_new_token(self, token, *, chunk=None, **kwargs):
            streamed.append(chunk.message.id)

    with ScriptedModel({"step 3": "They differ."}) as model:
        result = await of(model).run(context, {"callbacks": [Ids()]})
    assert result.text == "They differ."
    assert set(streamed) == {result.result.id}
    assert (result.status, result.confidence, result.replan_needed) == ("success", 1.0, False)


async def test_a_picture_in_the_request_is_shown_to_the_model(context):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = HumanMessage([{"type": "text", "text": "What is this?"}, picture])
    with ScriptedModel({"specialist": "A dot."}) as model:
        await of(model).run(context.replace(messages=(request,)), {})
    assert model.calls[0].messages[1].content[1:] == [picture]
