"""What is killed goes on: nothing on record is lost, asked or done twice, in both kinds of store.

| subject | moments |
|---|---|
| a run that asks | each 8th and each 11th write of a life (PostgreSQL: 17th), rows of its log |
| a later run of a thread, before it has begun | of its writes the first four |
| a run that ends, before a later one | behind its answer, before a checkpoint has it |
| a run that asks, before it is exported | behind its question, before a checkpoint has it |
| a run with two plans that are approved | behind each of its checkpoints |
| a pipeline of four levels | each third write of a life (PostgreSQL: fifth) |
| a plan whose first step is done while it is written | at work, on record, written, in its round |
| a run that is edited, or told something | each write of the edit, and steps behind it |
| a session, in a file or in the store | in a tool loop, and at the end of each turn |
| effects outside: of steps, tools, declared or not | before an effect, in it, behind it |
| a service with several runs | by SIGKILL and SIGTERM, with others beside it |

Steps that raise, hang or meet limits, and kills of commands, are in `test_crash_matrix.py`; kills
at random moments are in `benchmarks/torture.py`.
"""

import asyncio
import json
import signal
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

import pytest
from langchain_core.messages import ToolMessage

import killed_programs as programs
from kills import Life, begun, lived_on, lived_on_and_on
from made_pipelines import FourDeep, texts
from replan import open_runtime
from replan.assembly.pipelines import run_pipeline
from replan.storage.memory_threads import MemoryThreads
from replan.testing import OpenAIServer, always


@pytest.fixture
def life(where, tmp_path):
    folder = tmp_path / "lives"
    folder.mkdir()
    return Life(folder, where)


def in_turns(name, values):
    """Each value in one store, the next one in the other: none knows what is killed."""
    stores = [("sqlite", "postgres")[at % 2] for at in range(len(values))]
    pairs = [*zip(stores, values, strict=True)]
    return pytest.mark.parametrize(("where", name), pairs, indirect=["where"])


def every(*strides):
    """A life is killed after so many writes, and so is the one that goes on with it."""
    return pytest.mark.parametrize(("where", "stride"), strides, indirect=["where"])


@every(("sqlite", 8), ("sqlite", 11), ("postgres", 17))
def test_a_run_that_asks_outlives_every_kill_with_the_right_answers(life, stride):
    check_asked(life, lived_on_and_on(programs.asking, life, stride))


ROWS = ("noted decision", "finished 3", "noted answer/2/a/1", "noted answer/1/a/1")


# These two are done side by side.
@in_turns("last", ["finished 4", "finished 5"])
def test_a_run_that_asks_outlives_kills_behind_rows_of_its_log(life, last):
    check_asked(life, lived_on(programs.asking, life, *ROWS, last))


def check_asked(life, ended):
    answers = {step: f"answer to {step}/a/1" for step in (1, 2)}
    heard = [f"{step}: {answer}" for step, answer in answers.items()]
    assert ended["outcome"] == "completed"
    assert ended["asked"] == {f"{step}/a/1": answer for step, answer in answers.items()}
    assert ended["texts"]["4/a"] == f"4: {heard[0]}"
    assert ended["texts"]["5/a"] == f"5: {heard[0]} {heard[1]}"
    on_record: set[str] = set()
    for line in life.said:
        word, _, what = line.partition(" ")
        match word:
            case "noted":
                on_record.add("decided" if what == "decision" else what)
            case "finished":
                on_record.add(f"ran {what}")
            case "answered":
                assert f"answer/{what}" not in on_record
            case _:
                assert line not in on_record


BEGINNINGS = (
    *((1, "resume"), (1, "graph"), (2, "again"), (2, "recover")),
    *((3, "recover"), (3, "resume"), (4, "again"), (4, "graph")),
)


@in_turns("at", BEGINNINGS)
def test_a_later_run_that_was_killed_before_it_began_begins_as_it_was_asked_to(life, at):
    moment, door = at
    ended = lived_on(programs.following, replace(life, given=door), moment)
    # Nothing of the run before is shown as its own, and what it began with still counts.
    assert ended == {"seen": ["interrupted", ""], "ended": ["second", "waiting", ["plan"]]}


@pytest.mark.parametrize("where", ["sqlite", "postgres"], indirect=True)
def test_an_end_that_no_checkpoint_has_outlives_the_next_run_of_its_thread(life):
    ended = lived_on(programs.answering, life, "answer")
    (before, after) = ended["ended"]
    assert (before[0], after) == ("completed", before)
    assert ended["said"] == ["human", "ai"] * 2


@pytest.mark.parametrize("where", ["sqlite", "postgres"], indirect=True)
def test_a_session_that_is_stopped_behind_a_round_which_no_checkpoint_has_continues(life):
    assert lived_on(programs.stopped_session, life, "ended 3") == ["stopped", None, "done"]
    assert sorted(line for line in life.said if line.startswith("ran")) == [
        "ran 1",
        "ran 2",
        "ran 3",
    ]


@pytest.mark.parametrize("where", ["sqlite", "postgres"], indirect=True)
def test_a_run_whose_question_no_checkpoint_has_is_exported(life):
    assert lived_on(programs.leaving, life, "question") == [["1/a/1"], "completed", "blue"]


TOLD = (
    *("run_started", "thinking_started", "thinking_completed", "plan_created"),
    *("approval_requested", "answer_received", "specialist_completed", "plan_updated"),
    *("model_invoked", "model_completed", "feedback_generated", "plan_updated"),
    *("approval_requested", "answer_received", "specialist_completed", "plan_updated"),
    *("model_invoked", "model_completed", "feedback_generated", "task_completed"),
)


@every(("sqlite", 1), ("postgres", 2))
def test_the_log_of_a_run_tells_all_that_its_checkpoints_have(life, stride):
    assert lived_on_and_on(programs.approving_twice, life, stride) == list(TOLD)


@every(("sqlite", 3), ("postgres", 5))
def test_a_killed_pipeline_loses_no_message_and_says_none_twice(life, stride):
    ended = lived_on_and_on(programs.piping, life, stride)
    alone = MemoryThreads()
    asyncio.run(run_pipeline(FourDeep, "hello", repository=alone))
    expected = texts(asyncio.run(alone.get_thread("main")))
    assert (ended["text"], ended["texts"]) == ("one/finish: hello", expected)
    assert len(ended["ids"]) == len({*ended["ids"]})
    stored: dict[str, str] = {}
    for line in life.said:
        word, what, *said = line.split(" ", 2)
        if word == "stored":
            stored[what] = said[0].partition(":")[0]
        else:
            assert what not in stored.values(), f"{what} is done twice"
    assert stored.keys() <= {*ended["ids"]}, "a stored message is lost"


@in_turns("moment", ["at work", "on record", "written", "in its round"])
def test_what_was_done_early_counts_after_a_kill(life, moment):
    ended = lived_on(programs.planning, life, moment)
    assert ended["outcome"] == "completed"
    assert ended["texts"] == {f"{step}/a": f"done {step}" for step in (1, 2, 3)}
    assert ended["done"] == [1, 2, 3]
    assert ended["plans"] == (moment != "in its round")
    assert life.said.count("ran 1") == 1 + (moment == "at work")
    assert life.said.count("ran 3") == 1 + (moment == "in its round")


STEERED = ("add_request", "steered", "steering_outcome", "stored", "at work", "take_requests")


@in_turns("moment", [*STEERED, "ahead", "ahead, unsafe"])
def test_an_edit_is_made_once_whenever_the_process_is_killed(life, moment):
    check_steered(replace(life, given="offline"), moment, "person")


@in_turns("moment", STEERED[::-1])
def test_a_message_is_judged_whenever_the_process_is_killed(
    life, moment, openai_server, monkeypatch
):
    def judge(messages):
        if not any("<said>\nSpeak German.\n</said>" in each.text for each in messages):
            return programs.END
        plan = "- [x] 1. One @a\n- [ ] 2. Zwei @a (after 1)\n- [ ] 3. Drei @a (after 2)\n"
        return f"---\nverdict: continue\nupdate: German was asked for.\n---\n{plan}"

    server = openai_server({"feedback": always(judge)})
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    check_steered(replace(life, given="openai:m"), moment, "model")


def check_steered(life, moment, by):
    """See that the plan was changed once, and that each step was done as it is in the new one."""
    ended = lived_on(programs.steered, life, moment)
    assert (ended["outcome"], ended["updates"]) == ("completed", [[2, by]])
    assert (ended["warnings"], ended["requests"]) == (0, 0)
    assert "refused" not in ended["statuses"]
    assert ended["statuses"].count("taken") == 1
    new = {"ahead": ["ran 4 Vier"], "ahead, unsafe": ["ran 5 Fuenf"]}.get(moment, [])
    done = ["ran 1 One", "ran 2 Zwei", "ran 3 Drei", *new]
    # What was cut off, and is declared to be harmless, is done again, and the rest when asked.
    cut_off = {"add_request": [1], "at work": [3]}.get(moment, [1, 4] if new else [])
    ran = [line for line in life.said if line.startswith("ran")]
    assert sorted(ran) == sorted([*done, *(done[step - 1] for step in cut_off)])
    asked = [line for line in life.said if line.startswith("asked")]
    assert asked == ["asked 5/b/1 unknown_outcome"] * (moment == "ahead, unsafe")


PLAN = """\
---
complexity: complex
---
- [ ] 1. Choose @asker
- [ ] 2. Buy it @buyer (after 1)
"""


def reply(request):
    """What a model says that knows nothing but what it is told."""
    if request.call.node == "think":
        is_simple = "capital" in str(request.messages[-1].content)
        return "---\ncomplexity: simple\n---\nParis." if is_simple else PLAN
    if request.call.step == 2:
        done = sum(isinstance(each, ToolMessage) for each in request.messages)
        pay, ship = ("pay", {"amount": 5}), ("ship", {"place": "Rome"})
        return (programs.calling(pay), programs.calling(ship), "Bought.")[done]
    return "---\nverdict: complete\n---\nIt is painted and paid."


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_killed", [False, True], ids=["whole", "killed in the tool loop"])
def test_each_turn_of_a_session_is_taken_by_a_process_of_its_own(life, is_killed):
    moments = ["turn 1", *["pay"] * is_killed, "turn 2", "turn 3", "turn 4"]
    with OpenAIServer(reply) as server:
        context, results = lived_on(
            programs.session_in_a_file, replace(life, given=server.base_url), *moments
        )
        calls = server.calls
    asked, bought, not_yet, last, capital = results
    (approval,) = bought["metadata"]["questions"]
    assert (asked["response"], last["response"], capital["response"]) == (
        "Which colour?",
        "It is painted and paid.",
        "Paris.",
    )
    assert (approval["kind"], bought["metadata"]["stage"]) == ("approval", "approval")
    assert [each["tool_name"] for each in bought["tool_execution_results"]] == ["pay"]
    assert approval["fingerprint"] in not_yet["response"]
    # A service that knows its keys again sees each of them once.
    again = ["choose", "pay"] * is_killed
    assert sorted(line.split()[0] for line in life.said) == sorted(
        ["choose", "pay", "ship", *again]
    )
    assert len({*life.said}) == 3
    # Only what the killed process had asked for is asked for again.
    assert calls["step 2/buyer"] == (4 if is_killed else 3)
    assert (calls["think"], calls["feedback"]) == (2, 1)
    assert [each["role"] for each in context["dialogue_history"]] == ["user", "assistant"] * 5
    assert [each["tool_name"] for each in context["tool_execution_history"]] == ["pay", "ship"]
    assert set(context["project_state"]) == {"plan"}


@pytest.mark.parametrize(
    ("where", "moments"),
    [("sqlite", ["pay"]), ("postgres", ["append 1", "pay", "append 2", "append 3"])],
    indirect=["where"],
)
def test_each_turn_of_a_session_is_killed_and_delivered_again(life, moments):
    with OpenAIServer(reply) as server:
        context, results = lived_on(
            programs.session_in_a_store, replace(life, given=server.base_url), *moments
        )
        calls = server.calls
    assert results[0]["response"] == "Which colour?"
    assert results[2]["response"] == "It is painted and paid."
    effects = [line for line in life.said if not line.startswith("sees")]
    assert [line.split()[0] for line in effects] == ["choose", "pay", "pay", "ship"]
    assert len({*effects}) == 3
    # What the killed worker did is seen by everybody, and the session is as it was.
    assert "sees interrupted 2" in life.said
    assert (calls["think"], calls["feedback"], calls["step 2/buyer"]) == (1, 1, 3)
    assert len(context["dialogue_history"]) == 6
    assert [each["tool_name"] for each in context["tool_execution_history"]] == ["pay", "ship"]
    assert context["session_metadata"]["version"] == 3


KEYED = "- [ ] 1. Begin @keyed\n"
UNSAFE = f"{KEYED}- [ ] 2. Act @unsafe (after 1)\n"
AGAIN, DONE = "run again", "it is done: receipt 7"
EFFECTS = [
    # plan, killed at, what is done in doubt, answers, the outcome, the ledger of the step
    (KEYED, "step-1", "ask", [], "completed", "1 1 unknown_outcome, 1 2 done"),
    (KEYED, "after-1", "ask", [], "completed", "1 1 unknown_outcome, 1 2 done"),
    (UNSAFE, "unsafe", "fail", [], "partial", "2 1 failed"),
    (UNSAFE, "unsafe", "ask", [DONE], "completed", "2 1 done"),
    (UNSAFE, "before-unsafe", "ask", [AGAIN], "completed", "2 1 unknown_outcome, 2 2 done"),
    (programs.MIXED, "charge", "ask", [], "completed", "2 1 unknown_outcome, 2 2 done"),
    (programs.MIXED, "look", "ask", [], "completed", "2 1 unknown_outcome, 2 2 done"),
    *(
        (
            programs.MIXED,
            at,
            "ask",
            [answer],
            "completed",
            "2 1 unknown_outcome, 2 2 waiting, 2 3 done",
        )
        for at, answer in (("before-mail", AGAIN), ("mail", DONE))
    ),
    (programs.MIXED, "mail", "fail", [], "partial", "2 1 unknown_outcome, 2 2 failed"),
]


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("plan", "at", "on_doubt", "answers", "outcome", "ledger"), EFFECTS)
def test_an_effect_is_done_again_under_its_key_or_asked_about(
    life, plan, at, on_doubt, answers, outcome, ledger
):
    ended = lived_on(programs.doing, replace(life, given=[plan, on_doubt, *answers]), at)
    assert ended["outcome"] == outcome
    step = ledger[0]
    of_step = [each for each in ended["ledger"] if each.startswith(f"{step} ")]
    assert of_step == ledger.split(", ")
    if step == "2":
        assert [each for each in ended["ledger"] if each.startswith("1 ")] == ["1 1 done"]
    # What has a key is done under one key; what has none is done once, or not before it is asked.
    times = Counter(line.split()[0] for line in life.said)
    for keyed in ("step-1", "charge", "step-3"):
        assert len({line for line in life.said if line.split()[0] == keyed}) == (keyed in times)
    assert "step-1" not in {line.strip() for line in life.said}
    assert times["unsafe"] == ("@unsafe" in plan)
    assert times["step-1"] == 1 + (plan == KEYED)
    if plan == programs.MIXED:
        # What the model said is on record: it is asked as often, however often the process ends.
        assert times["model"] == 2 + (outcome == "completed")
        assert (times["mail"], times["step-3"]) == (1, outcome == "completed")
        if at not in ("charge", "look"):  # these begin together
            assert times["charge"] == times["look"] == 1
        else:
            assert times[at] == 2
    about = "The call of mail" if plan == programs.MIXED else "Step 2 at @unsafe"
    said = f"{about} was cut off in attempt 1"
    assert len(ended["asked"]) == len(answers)
    assert all(said in text for text in ended["asked"])
    if on_doubt == "fail":
        assert said in ended["texts"]["2/agent" if plan == programs.MIXED else "2/unsafe"]
    if answers == [DONE] and plan == UNSAFE:
        assert ended["texts"]["2/unsafe"] == "receipt 7"


class Service:
    """A service on one store; each of its processes is one life."""

    def __init__(self, life):
        self.life = life

    def at_work(self, *ids):
        """A process in the middle of these runs."""
        process = begun(programs.serving, replace(self.life, given=ids))
        for _ in ids:
            assert process.stdout.readline() == "there\n"
        return process

    def cut_off(self, *ids, by=signal.SIGKILL):
        with self.at_work(*ids) as process:
            process.send_signal(by)
            assert process.wait() == (-by if by is signal.SIGKILL else 0)

    def recovered(self, processes=1):
        """What processes that start together resume, and leave."""
        with ExitStack() as all_of_them:
            given = replace(self.life, given=[])
            running = [
                all_of_them.enter_context(begun(programs.serving, given)) for _ in range(processes)
            ]
            told = [json.loads(process.stdout.readline()) for process in running]
            assert [process.wait() for process in running] == [0] * processes
        return told if processes > 1 else told[0]

    @property
    def work(self):
        """How often each step was done: by run and step."""
        return Counter(tuple(line.split()[:2]) for line in self.life.said)


@pytest.fixture
def service(life):
    return Service(life)


@pytest.mark.one_store
def test_a_new_process_resumes_what_a_killed_one_left(service):
    service.cut_off("reader-1", "sender-1", "payer-1", "asker-1")
    assert service.recovered() == {
        "resumed": {
            "reader-1": ["completed"],
            "sender-1": ["completed"],
            "payer-1": ["waiting", "unknown_outcome"],
        },
        "left": {"asker-1": "waiting"},
    }
    # What is on record is not done again, and nobody pays twice unasked.
    again = {("reader-1", "2"), ("sender-1", "2")}
    done = [(f"{kind}-1", step) for kind in ("reader", "sender", "payer") for step in "12"]
    assert service.work == {each: 1 + (each in again) for each in done}
    assert len({line for line in service.life.said if line.startswith("sender-1 2 ")}) == 1
    left = {"payer-1": "waiting", "asker-1": "waiting"}
    assert service.recovered() == {"resumed": {}, "left": left}


@pytest.mark.one_store
def test_a_new_process_resumes_what_a_signal_stopped(service):
    service.cut_off("reader-1", "payer-1", by=signal.SIGTERM)
    resumed = {"reader-1": ["completed"], "payer-1": ["waiting", "unknown_outcome"]}
    assert service.recovered() == {"resumed": resumed, "left": {}}


def test_what_a_living_process_works_on_is_left_to_it(service):
    service.cut_off("reader-1")
    with service.at_work("reader-2"):
        resumed = {"reader-1": ["completed"]}
        assert service.recovered() == {"resumed": resumed, "left": {"reader-2": "held"}}


def test_processes_that_start_together_resume_each_run_once(service):
    ids = [f"reader-{number}" for number in range(4)] + ["payer-1"]
    service.cut_off(*ids)
    told = service.recovered(processes=3)
    assert sorted(run_id for each in told for run_id in each["resumed"]) == sorted(ids)
    done = {run: number for (run, step), number in service.work.items() if step == "2"}
    assert done == {each: 1 if each.startswith("payer") else 2 for each in ids}


def owner(life, until):
    """A process that works on a run, and is at an event of it."""
    process = begun(programs.owning, replace(life, given=until))
    assert process.stdout.readline() == "there\n"
    return process


def other(life):
    team = programs.two_of_us(lambda _: "dug")
    return open_runtime(team, storage=life.where)


@pytest.mark.one_store
async def test_a_run_is_stopped_from_another_process_and_gone_on_with_there(life):
    with owner(life, "input_requested") as process:
        async with other(life) as runtime:
            assert (await runtime.get("r")).outcome == "running"
            told = [event async for event in until(runtime, "input_requested")]
            await runtime.stop("r", by="anna")
            assert (json.loads(process.stdout.readline()), process.wait()) == ("interrupted", 0)
            assert (await runtime.get("r")).outcome == "interrupted"
            result = await (await runtime.answer("r", "blue", by="anna"))
            assert (result.outcome, result.results[2].text) == ("completed", "blue")
            events = [event async for event in runtime.events("r")]
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    assert events[: len(told)] == told
    assert sum(event.type == "run_started" for event in events) == 1


@pytest.mark.one_store
async def test_a_plan_is_edited_from_another_process_within_a_second(life):
    with owner(life, "specialist_invoked") as process:
        async with other(life) as runtime:
            plan = (await runtime.get("r")).plan
            text = plan.content.replace("2. Paint @painter", "2. Fence @worker (after 1)")
            assert await runtime.edit_plan("r", text, version=1, by="anna") == (1,)
            *_, noticed = [event async for event in until(runtime, "run_steered")]
            (request,) = await runtime.storage.log.requests(["r"])
            assert (noticed.status, noticed.by, noticed.waiting_for) == ("waits", "anna", (1,))
            assert (noticed.at - request.at).total_seconds() < 1
            await runtime.stop("r")
            assert process.wait() == 0
            result = await runtime.resume("r")
            assert (result.outcome, result.plan.version) == ("completed", 2)
            assert result.plan.step(2).description == "Fence"


@pytest.mark.one_store
async def test_who_answers_a_run_whose_process_was_killed_takes_it_up(life):
    with owner(life, "input_requested") as process:
        process.kill()
        process.wait()
        async with other(life) as runtime:
            view = await runtime.get("r")
            asked = [ask.key for ask in view.pending_questions]
            assert (view.outcome, asked) == ("waiting", ["2/painter/1"])
            await runtime.stop("r")
            result = await (await runtime.answer("r", "blue"))
            assert (result.outcome, result.results[1].text) == ("completed", "dug")


async def until(runtime, kind):
    async for event in runtime.events("r"):
        yield event
        if event.type == kind:
            return
