"""Teams whose work can be held up, asks, and pays: for the tests of what people do on pages."""

import asyncio

from langchain_core.messages import AIMessage

from replan import Host, Specialist, Team, ask_user
from replan.testing import ScriptedModel, always

END = {"feedback": always("---\nverdict: complete\n---\nThe end.")}


class Fence:
    """What was done to a fence."""

    PLAN = "# Fence\n\n- [ ] 1. Measure @worker\n- [ ] 2. Paint @painter (after 1)\n"

    def __init__(self, fails=""):
        self.fails = fails
        self.did, self.painted, self.paid = [], [], []
        self.at_work, self.leave = asyncio.Event(), asyncio.Event()
        self.leave.set()

    async def work(self, context):
        self.at_work.set()
        await self.leave.wait()
        self.did.append(context.plan_step.description)
        return "9 m"

    def paint(self, _):
        if self.fails:
            raise ValueError(self.fails)
        hue = ask_user("Hue?")
        self.painted.append(hue)
        return f"painted {hue}"

    def team(self, model=None, **settings):
        return Team(
            host=Host(model=model or ScriptedModel(END)),
            specialists=[
                Specialist(name="worker", intended_use="Works.", run=self.work, effects="pure"),
                Specialist(name="painter", intended_use="Paints.", run=self.paint),
            ],
            **settings,
        )

    def paying(self):
        """A team whose tool needs approval."""

        async def pay(to: str, amount: int) -> str:
            """Pay."""
            self.paid.append((to, amount))
            return f"paid {amount}"

        wanted = {"name": "pay", "args": {"to": "eva", "amount": 9}, "id": "c1"}
        replies = {
            "step 1": [*([AIMessage("", tool_calls=[wanted]), "Paid."] * 2), always("Paid.")],
            **END,
        }
        clerk = Specialist(
            name="payer",
            intended_use="Pays.",
            chat_model=ScriptedModel(replies),
            tools=[pay],
            approve=["pay"],
        )
        return Team(host=Host(model=ScriptedModel(END)), specialists=[clerk])
