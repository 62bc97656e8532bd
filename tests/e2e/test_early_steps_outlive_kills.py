"""A process is killed while the host writes its plan: what was done early is not done again."""

import signal
import subprocess

import pytest

import warm
from replan import Host, Specialist, Team, open_runtime
from replan.testing import ScriptedModel

LIFE = """\
import asyncio, os, signal, sys
from replan import Host, Specialist, Team, open_runtime
from replan.testing import Reply, ScriptedModel

where, log, kill_at, *pieces = sys.argv[1:]
ended = {step: asyncio.Event() for step in (1, 2, 3)}
never = asyncio.Event()

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Pausing(ScriptedModel):
    async def _astream(self, messages, *args, **options):
        async for chunk in super()._astream(messages, *args, **options):
            if chunk.text == pieces[-1]:
                await ended[1].wait()
                if kill_at == "written":
                    die()
            yield chunk

async def work(context):
    step = context.plan_step.id
    with open(log, "a") as lines:
        print("ran", step, file=lines)
    if step == 1 and kill_at == "at work" or step == 3 and kill_at == "in its round":
        die()
    return f"done {step}"

async def main():
    model = Pausing({"think": Reply(text="".join(pieces), chunks=pieces)})
    team = Team(Host(model), [Specialist("a", "Works.", run=work, effects="pure")])
    async with open_runtime(team, storage=where) as runtime:
        log_, finished = runtime.storage.log, runtime.storage.log.finished

        async def watched(attempt, *given):
            result = await finished(attempt, *given)
            if attempt.step_id == 1 and kill_at == "on record":
                die()
            ended[attempt.step_id].set()
            return result

        log_.finished = watched
        await runtime.run("Go.", run_id="r")

asyncio.run(main())
"""
PIECES = (
    "---\ncomplexity: complex\nreasoning: Work.\n---\n",
    "- [ ] 1. One @a\n",
    "- [ ] 2. Two @a (after 1)\n",
    "- [ ] 3. Three @a (after 2)\n",
)
AGAIN = {"at work": 2, "on record": 1, "written": 1, "in its round": 1}
"""How often step 1 runs in all, by the moment at which the process is killed."""


@pytest.mark.parametrize("moment", AGAIN)
async def test_what_was_done_early_counts_after_a_kill(where, tmp_path, moment):
    log = tmp_path / "ran"
    life = ["-c", LIFE, where, str(log), moment, *PIECES]
    with warm.Process(life, stdout=subprocess.PIPE) as process:
        assert process.wait() == -signal.SIGKILL
    assert "ran 1" in log.read_text()

    def work(context):
        with log.open("a") as lines:
            print("ran", context.plan_step.id, file=lines)
        return f"done {context.plan_step.id}"

    think = {} if moment == "in its round" else {"think": "".join(PIECES)}
    with ScriptedModel({**think, "feedback": "---\nverdict: complete\n---\nThe end."}) as model:
        team = Team(Host(model), [Specialist("a", "Works.", run=work, effects="pure")])
        async with open_runtime(team, storage=where) as runtime:
            result = await runtime.resume("r")
            report = await runtime.get("r")
    assert (result.outcome, result.text) == ("completed", "The end.")
    assert {key: each.text for key, each in result.results.items()} == {
        f"{step}/a": f"done {step}" for step in (1, 2, 3)
    }
    ran = log.read_text().splitlines()
    assert ran.count("ran 1") == AGAIN[moment]
    assert ran.count("ran 3") == 1 + (moment == "in its round")
    done = [each for each in report.ledger if each.outcome == "done"]
    assert sorted(each.step_id for each in done) == [1, 2, 3]
