"""Whatever becomes of a run: what is on record as done is not done again, what changed is done."""

import asyncio
from collections import Counter

from hypothesis import given, settings, strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from replan import Host, Limits, Specialist, Team, build_graph, run
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import state_of

HEAD = "---\nverdict: continue\nupdate: Again.\n---\n"
WORDS = ("north", "south")


class World:
    """A plan whose steps 1 and 2 fail and are revised as drawn, and whose process is cut off."""

    def __init__(self, ends, revisions):
        self.ends, self.revisions = list(ends), list(revisions)
        self.lines = {1: [0, 0], 2: [0, 0]}
        self.removed = []
        self.calls, self.opened = [], Counter({1: 1, 2: 1, 3: 1, 4: 1})
        self.cut_off = asyncio.Event()

    def document(self):
        lines = [
            f"- [{'-' if step in self.removed else ' '}] {step}. Go {WORDS[word]} @a"
            + (f" (priority {urgency})" if urgency else "")
            for step, (word, urgency) in self.lines.items()
        ]
        return "\n".join([*lines, "- [ ] 3. Go on @a (after 4)", "- [ ] 4. Begin @a\n"])

    async def work(self, context):
        step = context.plan_step
        end = self.ends.pop(0) if self.ends else "done"
        call = [step.id, step.description, str(context.inputs), context.idempotency_key, end]
        self.calls.append(call)
        if end == "cut off":
            self.cut_off.set()
            await asyncio.Event().wait()
        if end == "failed" and step.id in self.lines:
            raise ValueError("no")
        call[-1] = "done"
        return f"{step.description} {len(self.calls)}"

    def judge(self, messages):
        """Revise what failed, as drawn; what was taken away before comes back."""
        done = {step for step, *_, end in self.calls if end == "done"}
        back, self.removed = self.removed, []
        failed = [step for step in self.lines if step not in done and step not in back]
        changes = {step: self.revisions.pop(0) for step in failed if self.revisions}
        if not back and not changes:
            return COMPLETE
        for step, change in changes.items():
            match change:
                case "how":
                    self.lines[step][1] += 1
                case "text":
                    self.lines[step][0] ^= 1
                case "remove":
                    self.removed.append(step)
        self.opened.update(back)
        self.opened.update(step for step in changes if step not in self.removed)
        return HEAD + self.document()

    async def run(self):
        model = ScriptedModel({"feedback": always(self.judge), "final_answer": always("Cut.")})
        config = Team(
            # This judge is asked once a round: a kill while it writes would ask it again.
            host=Host(model=model, early_steps=False),
            specialists=[
                Specialist(name="a", intended_use="Works.", run=self.work, effects="pure")
            ],
            limits=Limits(step_retries=0, max_stalls=50, max_rounds=50, max_parallel_steps=1),
        )
        graph = build_graph(config, checkpointer=InMemorySaver())
        given = {"plan": self.document()}
        while True:
            running = asyncio.ensure_future(state_of(run(graph, given, config=THREAD)))
            cut = asyncio.ensure_future(self.cut_off.wait())
            await asyncio.wait({running, cut}, return_when=asyncio.FIRST_COMPLETED)
            cut.cancel()
            if not self.cut_off.is_set():
                return await running
            self.cut_off.clear()
            running.cancel()
            await asyncio.wait({running})
            given = None


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(["done", "failed", "failed", "cut off"]), max_size=10),
    st.lists(st.sampled_from(["how", "text", "remove"]), max_size=6),
)
def test_every_step_is_done_once_and_whenever_it_was_changed(ends, revisions):
    world = World(ends, revisions)
    state = asyncio.run(world.run())
    assert state["is_completed"]
    done = Counter(step for step, *_, end in world.calls if end == "done")
    assert set(done.values()) <= {1}
    ended = Counter(step for step, *_, end in world.calls if end != "cut off")
    assert ended == world.opened
    works = {tuple(call[:3]) for call in world.calls}
    keys = {(tuple(call[:3]), call[3]) for call in world.calls}
    assert len(keys) == len(works) == len({key for _, key in keys})
