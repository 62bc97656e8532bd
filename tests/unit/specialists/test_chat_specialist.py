"""A specialist that is a chat model: what it is asked, and how its reply is read."""

from langchain_core.messages import HumanMessage

from replan.models.chat import Chat
from replan.specialists.prompted import PromptedSpecialist
from replan.state.team import SpecialistCard
from replan.testing import ScriptedModel

CARD = SpecialistCard(name="analyst", intended_use="Compares things.")


def of(model, **options):
    return PromptedSpecialist(card=CARD, answer=Chat(model).reply, **options)


async def test_a_picture_in_the_request_is_shown_to_the_model(context):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = HumanMessage([{"type": "text", "text": "What is this?"}, picture])
    with ScriptedModel({"specialist": "A dot."}) as model:
        await of(model).run(context.replace(messages=(request,)), {})
    assert model.calls[0].messages[1].content[1:] == [picture]
