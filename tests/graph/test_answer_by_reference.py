"""The answer by reference, named by the plan or at the end, beside what its pages show."""

from pydantic import BaseModel

from replan import Host, Specialist, Team, open_runtime, run
from replan.base.secrets.masking import KNOWN
from replan.testing import ScriptedModel

PLAN = "- [ ] 1. Look it up @finder\n- [ ] 2. Write the report @writer (after 1)\n"
GIVEN = {"messages": [("user", "Report.")], "plan": PLAN}
REPORT = "# The report\n\n" + "A line of it, word for word.\n" * 2_000


NAMING = "---\nverdict: complete\nfeedback: It is all there.\nanswer_step: 2\n---\n"
FORESEEN = f"---\ncomplexity: complex\nreasoning: Two parts.\nanswer_step: 2\n---\n{PLAN}"


def team_of(*judgements, report=REPORT, think=(), **host):
    model = ScriptedModel({"think": think, "feedback": list(judgements)})
    team = Team(
        Host(model, **host),
        [
            Specialist("finder", "Finds.", run=lambda _: "Found."),
            Specialist("writer", "Writes.", run=lambda _: report),
        ],
    )
    return model, team


async def test_a_result_that_the_state_has_only_an_excerpt_of_is_whole(tmp_path):
    model, team = team_of(NAMING)
    with model:
        async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
            result = await runtime.run(GIVEN)
    assert result.text == REPORT


async def test_so_is_one_that_the_plan_named(tmp_path):
    _, team = team_of(think=FORESEEN, judge="when_needed")
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        result = await runtime.run("Report.")
    assert (result.outcome, result.text) == ("completed", REPORT)


async def test_a_host_with_an_output_type_judges_whatever_the_plan_named():
    given = '---\nverdict: complete\n---\n{"cents": "5"}'
    options = {"think": FORESEEN, "judge": "when_needed", "output_type": dict[str, str]}
    model, team = team_of(given, **options)
    with model:
        assert (await run(team, "Report.")).output == {"cents": "5"}


async def test_a_result_with_a_known_secret_is_no_answer():
    secret = "s3cr3t-value-of-the-team"  # noqa: S105 - of this test
    model, team = team_of(NAMING, "---\nverdict: complete\n---\nNone.", report=f"It is {secret}")
    KNOWN.add([secret])
    try:
        with model:
            result = await run(team, GIVEN)
    finally:
        KNOWN.clear()
    assert result.text == "None."
    assert "holds a secret value" in model.calls[1].messages[-1].text


class Price(BaseModel):
    cents: int


async def test_a_result_of_the_answers_type_is_the_answer_and_its_value():
    model, team = team_of(NAMING, report='{"cents": 120}', output_type=Price)
    with model:
        result = await run(team, GIVEN)
    assert (result.text, result.output) == ('{"cents": 120}', Price(cents=120))
    assert len(model.calls) == 1


async def test_a_result_of_another_type_is_no_answer():
    given = '---\nverdict: complete\n---\n{"cents": 5}'
    model, team = team_of(NAMING, given, output_type=Price)
    with model:
        result = await run(team, GIVEN)
    assert result.output == Price(cents=5)
    assert "cannot be the answer" in model.calls[1].messages[-1].text
