"""A specialist that is a chat model: what it is asked, and how its reply is read."""

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage

from replan import ExecutionStatus, SpecialistResult
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


async def test_the_front_matter_of_a_reply_says_how_it_went_and_is_no_text(context):
    reply = """\
---
status: failed
confidence: 0.3
replan_needed: yes
retry: no
---
The EU text is outdated.
"""
    with ScriptedModel({"specialist": reply}) as model:
        result = await of(model).run(context, {})
    assert result.text.strip() == "The EU text is outdated."
    assert (result.status, result.confidence) == (ExecutionStatus.FAILED, 0.3)
    assert (result.replan_needed, result.retry) == (True, False)


@pytest.mark.parametrize("reply", ["", " \n"])
async def test_an_empty_reply_is_an_error_that_can_be_tried_again(context, reply):
    model = ScriptedModel({"specialist": reply})
    with model, pytest.raises(ValueError, match="empty reply"):
        await of(model).run(context, {})


async def test_the_model_sees_the_step_its_input_and_its_own_prompt(context):
    with ScriptedModel({"specialist": "Done."}) as model:
        await of(model, system_prompt="You compare laws.").run(context, {})
    system, asked = model.calls[0].messages
    assert system.text.startswith("You compare laws.")
    for part in ("Compare both", "The EU text.", "Which policy is better?"):
        assert part in asked.text


async def test_a_picture_in_the_request_is_shown_to_the_model(context):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = HumanMessage([{"type": "text", "text": "What is this?"}, picture])
    with ScriptedModel({"specialist": "A dot."}) as model:
        await of(model).run(context.replace(messages=(request,)), {})
    assert model.calls[0].messages[1].content[1:] == [picture]


async def test_an_input_processor_makes_the_messages(context):
    def only_the_task(given):
        return [HumanMessage(f"Please: {given.task_description}")]

    with ScriptedModel({"*": ["Done."]}) as model:
        await of(model, input_processor=only_the_task).run(context, {})
    assert [message.text for message in model.calls[0].messages] == ["Please: Compare both"]


async def test_an_output_processor_makes_the_result_and_may_leave_the_message_out(context):
    def doubtful(message):
        return SpecialistResult(confidence=0.2, replan_needed=True)

    with ScriptedModel({"*": ["Hm."]}) as model:
        result = await of(model, output_processor=doubtful).run(context, {})
    assert (result.text, result.confidence, result.replan_needed) == ("Hm.", 0.2, True)


async def test_an_output_processor_may_give_a_message_of_its_own(context):
    def shorter(message):
        return SpecialistResult(result=AIMessage(message.text[:2]))

    with ScriptedModel({"*": ["---\nstatus: failed\n---\n"]}) as model:
        result = await of(model, output_processor=shorter).run(context, {})
    # The front matter is the processor's to read, where there is one.
    assert (result.text, result.status) == ("--", "success")
