"""What a person reads at the terminal about a run that went wrong, and types next."""

import asyncio
import os
import re
import shlex
import signal
import sys

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from typer.testing import CliRunner

import warm
from replan import (
    Host,
    Limits,
    Price,
    RunSettings,
    Specialist,
    Team,
    open_runtime,
    open_storage,
)
from replan.cli.main import app
from replan.state.limits import Budget
from replan.testing import OpenAIServer, Reply, ScriptedModel, always
from scripts import END

PLAN = """- [ ] 1. Look the prices up @ledger
- [ ] 2. Count the lamps @counter
- [ ] 3. Pay the lamps @payer (after 1)
"""
WORK = """
import asyncio
import os
import signal


def fail(_):
    raise ConnectionError("the ledger is down")


async def wait(_):
    await asyncio.sleep(0 if os.environ.get("FAST") else 60)
    return "Waited."


def work(_):
    return "Worked."


def pay(_):
    if os.environ.get("KILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "Paid."
"""
TEAM = """
name: shop
host: {model: offline}
specialists:
  - {name: ledger, intended_use: Reads., run: 'deeds:fail', effects: pure}
  - {name: waiter, intended_use: Waits., run: 'deeds:wait', effects: pure}
  - {name: counter, intended_use: Counts., run: 'deeds:work', effects: pure}
  - {name: payer, intended_use: Pays., run: 'deeds:pay', effects: unsafe}
limits: {step_retries: 0}
"""


class Shop:
    """A folder with a team file, and a terminal in it."""

    def __init__(self, folder):
        (folder / "deeds.py").write_text(WORK)
        (folder / "team.yaml").write_text(TEAM)
        self.folder, self.where = folder, str(folder / "runs.db")

    def types(self, *words, **named):
        """Type a command, and return what it says with all of its exit code."""
        return CliRunner().invoke(app, [*words, "--storage", self.where], **named)

    def runs(self, plan, *options):
        (self.folder / "plan.md").write_text(plan)
        return self.types("run", "plan.md", "--team", "team.yaml", *options)

    def dies(self, plan):
        """Begin a run whose process is killed while it pays."""
        (self.folder / "plan.md").write_text(plan)
        words = ("-m", "replan", "run", "plan.md", "--team", "team.yaml", "--storage", self.where)
        path = os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")])
        ended = warm.run(*words, env={**os.environ, "PYTHONPATH": path, "KILL": "1"})
        assert ended.returncode == -signal.SIGKILL, ended.stderr

    def next(self):
        """The last lines of `replan show last`, without the place of the storage."""
        shown = self.types("show", "last").stdout.partition("next:\n")[2]
        lines = [" ".join(line.split()) for line in shown.splitlines()]
        return [line.replace(f" --storage {self.where}", "") for line in lines]

    def follow(self, line):
        """Type the command at the end of a line."""
        return self.types(*shlex.split(line.partition(": replan ")[2]))


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "deeds", raising=False)
    return Shop(tmp_path)


def test_each_command_about_a_failed_step_says_in_which_run_what_is_kept_and_what_runs(shop):
    ended = shop.runs(PLAN)
    retry, command, skip, other = shop.next()
    begins = "a new run begins from this plan, keeps step 2, and runs"
    pays = "step 3, Pay the lamps (unsafe)"
    assert retry == f"retry: {begins} step 1, Look the prices up; {pays}"
    assert skip == f"skip: {begins} {pays}, without the result of step 1"
    assert command.startswith("do step 1 again with: replan retry ")
    assert other.startswith("leave it out with: replan skip ")
    # The run ends with the same.
    assert f"{other} --storage {shop.where}" in ended.stderr.splitlines()


def test_a_step_that_failed_by_its_own_timeout_is_offered_more_of_it(shop, monkeypatch):
    shop.runs("- [ ] 1. Wait @waiter (timeout 50ms)\n- [ ] 2. Count @counter (after 1)\n")
    why, _, command, *_ = shop.next()
    assert why == (
        "step 1 failed because its own timeout of 0.05 s was over; "
        "give it more time, (timeout 0.1s) or longer, in its line of the plan"
    )
    assert command.endswith(" --timeout 0.1s")
    monkeypatch.setenv("FAST", "1")
    done = shop.follow(command.replace("0.1s", "30s"))
    assert done.exit_code == 0, done.output
    assert "1. Wait @waiter (timeout 30s)" in done.stdout


def test_a_step_that_failed_by_a_limit_of_its_run_is_offered_more_of_that(shop):
    shop.runs("- [ ] 1. Wait @waiter\n", "--set", "step_timeout=0.05")
    why, _, command, *_ = shop.next()
    assert why.endswith("give each step more time: step_timeout=0.1")
    assert command.endswith(" --set step_timeout=0.1")


@pytest.mark.parametrize(
    ("given", "settings", "fix"),
    [
        ({}, {"per_step": Budget(max_tokens=150)}, "--set per_step.max_tokens=300"),
        (
            {"limits": Budget(max_tokens=150)},
            {},
            "write max_tokens: 300 into the limits of @writer",
        ),
    ],
)
def test_a_step_that_failed_by_a_budget_names_whose_it_is(shop, given, settings, fix):
    model = ScriptedModel(
        {"specialist": always(Reply("x" * 90, usage=(100, 90))), "feedback": always(END)}
    )
    writer = Specialist("writer", "Writes.", chat_model=model, **given)
    team = Team(Host(model), [writer], limits=Limits(step_retries=0, **settings))

    async def begin():
        async with open_runtime(team, storage=shop.where) as runtime:
            await runtime.run({"plan": "- [ ] 1. Write @writer\n"}, run_id="r1")

    asyncio.run(begin())
    assert any(fix in line for line in shop.next())


def test_a_limit_is_offered_with_a_number_that_leaves_room(shop):
    ended = shop.runs("- [ ] 1. Count @counter\n- [ ] 2. Pay @payer\n", "--set", "max_steps=1")
    limit, runs, command = shop.next()
    assert limit == "the limit max_steps=1 ended it; 2 leaves it room"
    assert runs.endswith("unless their team asks: step 2, Pay (unsafe)")
    assert command.endswith("--set max_steps=2")
    assert command.split()[-1] in ended.stderr
    assert shop.types("resume", "last").stdout.count("--set max_steps=2") == 1
    assert shop.follow(command).exit_code == 0


def test_a_limit_on_money_says_what_was_spent(shop):
    model = ScriptedModel(
        {"specialist": always(Reply("x", usage=(100, 50))), "feedback": always(END)}
    )
    team = Team(
        Host(model),
        [Specialist("writer", "Writes.", chat_model=model)],
        prices={"ScriptedModel": Price(input=1, output=6)},
        currency="EUR",
    )
    settings = RunSettings(limits=Limits(max_cost=0.001))
    plan = "".join(
        f"- [ ] {n}. Write @writer (after {n - 1})\n" if n > 1 else "- [ ] 1. Write @writer\n"
        for n in range(1, 9)
    )

    async def begin():
        async with open_runtime(team, storage=shop.where) as runtime:
            return await runtime.run({"plan": plan}, run_id="r1", settings=settings)

    result = asyncio.run(begin())
    assert result.limit_reached == "max_cost"
    limit, *_, command = shop.next()[1:]
    assert limit.startswith("the limit max_cost=0.001 ended it, with 0.000")
    assert " EUR used; " in limit
    value = float(command.rpartition("max_cost=")[2])
    assert value >= 0.002


def test_a_rejected_plan_says_how_to_begin_anew(shop):
    shop.runs("# Fair\n\n- [ ] 1. Pay @payer\n", "--approve", "always")
    assert shop.types("resume", "last", "--answer", "reject").exit_code == 1
    *_, command = shop.next()
    assert command == f"begin anew with: replan run PLAN.md --team {shop.folder / 'team.yaml'}"


def test_a_rejected_call_can_be_asked_about_anew(shop):
    def orders(messages):
        if any(isinstance(each, ToolMessage) for each in messages):
            return "I did not order."
        call = {"name": "order", "args": {"pieces": 48}, "id": "c", "type": "tool_call"}
        return AIMessage("", tool_calls=[call])

    def order(pieces: int) -> str:
        """Order lamps."""
        return "ordered"

    model = ScriptedModel({"specialist": always(orders), "feedback": always(END)})
    buyer = Specialist("buyer", "Buys.", chat_model=model, tools=[order], approve=["order"])

    async def begin():
        async with open_runtime(
            Team(Host(model), [buyer], name="shop"), storage=shop.where
        ) as runtime:
            await runtime.run({"plan": "- [ ] 1. Order lamps @buyer\n"}, run_id="r1")
            await (await runtime.answer("r1", {"1/buyer/1": "reject"}))

    asyncio.run(begin())
    told, what, command = shop.next()
    assert (
        told == "a program began it: FILE is a team file whose name is shop, or act in the program"
    )
    assert what.startswith("step 1 ended without a call that was rejected; to be asked anew,")
    assert command == "do it again with: replan retry r1 1 --team FILE"


def test_a_killed_attempt_does_not_read_as_one_that_waits(shop):
    shop.dies(PLAN.replace("(after 1)", "(after 2)"))
    resumed = shop.types("resume", "last")
    assert resumed.exit_code == 3, resumed.output
    attempts = shop.types("show", "last", "--attempts").stdout
    killed = next(line for line in attempts.splitlines() if "step 3" in line)
    assert killed.endswith(
        "attempt 1: unknown outcome: its process ended while it was at work, so nobody knows what "
        "it did"
    )
    assert "waits for a person" not in attempts
    assert "waits for a person since" in shop.types("show", "last", "--step", "3").stdout
    # Where to look comes before the answers, and each of them says when it is right.
    shown = shop.types("show", "last").stdout
    (look,) = (line for line in shown.splitlines() if "look first whether it happened" in line)
    assert re.search(r"step 3 at @payer, begun 20.*, idempotency key [0-9a-f]{16,}$", look)
    *_, again, failed, done = shop.next()
    assert again.startswith("if it did not happen, do it again with: replan resume ")
    assert failed.startswith("say that it failed with: replan resume ")
    assert done.startswith("if it happened, continue with: replan resume ")
    assert "'run again': the work is done again from its beginning, even what may" in shown
    assert shown.count("nobody knows whether it took effect. Answer") == 0
    assert shop.types("resume", "last", "--answer", "run again").exit_code == 1
    again = shop.types("show", "last", "--attempts").stdout
    assert "step 3 payer, attempt 2: done" in again
    assert killed in again


FINE = "---\nverdict: complete\n---\nAll went well: the lamps are paid."


@pytest.mark.parametrize("option", [(), ("--verbose",)])
def test_what_failed_is_said_above_an_answer_that_sounds_as_if_nothing_did(shop, option):
    with OpenAIServer({"feedback": FINE}) as server:
        words = ("--model", "openai:m", "--base-url", server.base_url)
        ended = shop.runs(PLAN, *words, *option)
    shown = shop.types("show", "last").stdout
    failed = "step 1, Look the prices up, failed: ConnectionError: the ledger is down"
    for told, above in ((ended.stdout, f"{failed}\nAll"), (shown, f"{failed}\nanswer:\n  All")):
        assert f"\n{above} went well: the lamps are paid.\n" in told


def orders(messages):
    if any(isinstance(each, ToolMessage) for each in messages):
        return "It is ordered."
    call = {"name": "order", "args": {"pieces": 48, "note": "x" * 3_000}, "id": "c"}
    return AIMessage("", tool_calls=[{**call, "type": "tool_call"}])


def order(pieces: int, note: str) -> str:
    """Order lamps."""
    return "ordered"


@pytest.mark.parametrize("key", ["", "a key that only the test knows"])
def test_an_equal_call_of_another_run_is_told_where_one_is_asked_about(shop, monkeypatch, key):
    if key:
        monkeypatch.setenv("REPLAN_STORAGE_KEY", key)
    model = ScriptedModel({"specialist": always(orders), "feedback": always(END)})
    buyer = Specialist("buyer", "Buys.", chat_model=model, tools=[order], approve=["order"])
    plan = {"plan": "- [ ] 1. Order lamps @buyer\n"}

    async def begin():
        async with (
            open_storage(shop.where, key=os.environ.get("REPLAN_STORAGE_KEY")) as storage,
            open_runtime(Team(Host(model), [buyer]), storage=storage) as runtime,
        ):
            for name, user in (("other", "max"), ("first", "eva"), ("no", "eva"), ("now", "eva")):
                await (await runtime.start(plan, run_id=name, labels={"user": user}))
                answer = {"no": "reject", "first": "approve"}.get(name)
                if answer:
                    await (await runtime.answer(name, {"1/buyer/1": answer}))

    asyncio.run(begin())
    told = [line.strip() for line in shop.types("show", "now").stdout.splitlines()]
    (equal,) = (line for line in told if "equal call" in line)
    assert re.fullmatch(r"run first made an equal call at 20\S+ \S+: it is done", equal)
    assert "equal call" not in shop.types("show", "other").stdout


def test_a_step_is_not_done_again_by_a_team_that_has_nobody_for_it(shop):
    shop.runs("- [ ] 1. Pay @payer\n")
    (shop.folder / "other.yaml").write_text(TEAM.replace("name: payer", "name: clerk"))
    refused = shop.types("retry", "last", "1", "--team", "other.yaml", "--yes")
    assert refused.exit_code == 2
    assert "Step 1 is for @payer, who is not on the team." in refused.stderr


def test_a_refused_answer_is_followed_by_the_command_that_answers(shop):
    asked = "- [ ] 1. Pay @payer (ask first)\n- [ ] 2. Pay @payer (ask first)\n"
    assert shop.runs(asked).exit_code == 3
    refused = shop.types("resume", "last", "--answer", "approve")
    assert refused.exit_code == 2
    for key, line in zip(("1/payer/1", "2/payer/1"), refused.stderr.splitlines()[-2:], strict=True):
        assert line.startswith(f"approve {key} with: replan resume ")
        assert line.endswith(f" --answer {key}=approve")


def test_a_step_of_a_rejected_plan_is_not_said_to_be_still_to_come(shop):
    shop.runs("- [ ] 1. Pay @payer\n", "--approve", "always")
    shop.types("resume", "last", "--answer", "reject")
    refused = shop.types("retry", "last", "1")
    assert "Step 1 was not begun, and the run is over: begin a new run." in refused.stderr


def test_work_in_doubt_that_ran_out_of_time_is_said_to_do_so_again(shop):
    unsafe = TEAM.replace("run: 'deeds:wait', effects: pure", "run: 'deeds:wait', effects: unsafe")
    (shop.folder / "team.yaml").write_text(unsafe)
    (shop.folder / "plan.md").write_text("- [ ] 1. Wait @waiter (timeout 50ms)\n")
    asked = shop.types("run", "plan.md", "--team", "team.yaml")
    assert asked.exit_code == 3
    again = (
        "    again, it would end as before: its own timeout of 0.05 s was over; give it more time, "
        "(timeout 0.1s) or longer, in its line of the plan"
    )
    assert again in asked.stderr.splitlines()
    assert re.search(r"step 1 at @waiter, begun 20.*, idempotency key [0-9a-f]{16,}", asked.stderr)
