"""Whatever happens to a run, wherever it is kept, however it goes on: nothing finished is lost.

| | SQLite | PostgreSQL |
|---|---|---|
| a step raises | terminal | Python |
| a step times out | Python | terminal |
| the run is cancelled | terminal | Python |
| its process is killed | Python | terminal |
| it is killed again while it goes on | terminal | Python |
| a new message on its thread | Python | terminal |
| a limit is reached | terminal | Python |
| the model's server is down | Python | terminal |
| PostgreSQL restarts | | terminal, Python |
| the disk is full | Python | terminal |
| it is killed between its log and its checkpoint | terminal | Python |

Each run is begun at the terminal, meets what happens, and goes on by what stands in the table; the
store knows nothing of the door, so each happening meets both of each once. For each it is counted
outside of Replan: steps on record that are done again 0, results swapped 0, lost 0. What happens at
random moments is in `benchmarks/torture.py`; what makes every single write fail, in
`tests/graph/test_storage_faults.py`.
"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import psycopg
import pytest

from kept_runs import AFTER, PLAN, KeptRun, fail, hang, interrupt, kill, text_of
from postgres import free_port
from replan import open_storage
from replan.storage import opening

ALL = set(AFTER)
PAGES = 12
"""Pages that a SQLite file may still grow by where the disk is small."""

HAPPENINGS = {}


def happening(function):
    HAPPENINGS[function.__name__.replace("_", " ")] = function
    return function


@happening
def a_step_raises(run, by, request):
    run.traps = {3: fail}
    assert run.begin().exit_code == 1
    run.go_on(run.resume, by)
    return {1, 2, 4}, "partial"


@happening
def a_step_times_out(run, by, request):
    run.traps = {3: hang}
    plan = PLAN.replace("Number 3 @worker (after 1)", "Number 3 @worker (after 1; timeout 300ms)")
    (run.folder / "plan.md").write_text(plan)
    assert run.begin().exit_code == 0
    run.go_on(run.resume, by)
    return ALL, "completed"


@happening
def the_run_is_cancelled(run, by, request):
    run.traps = {5: interrupt}
    assert run.begin().exit_code == 130
    run.go_on(run.resume, by)
    return ALL, "completed"


@happening
def its_process_is_killed(run, by, request):
    run.traps = {5: kill}
    run.die(run.begin)
    run.traps = {}
    run.go_on(run.resume, by)
    return ALL, "completed"


@happening
def it_is_killed_again_while_it_goes_on(run, by, request):
    run.traps = {2: kill}
    run.die(run.begin)
    for step in (5, 6):
        run.traps = {step: kill}
        run.go_on(run.die, run.resume, by)
        run.traps = {}
    run.go_on(run.resume, by)
    return ALL, "completed"


@happening
def a_new_message_on_its_thread(run, by, request):
    run.traps = {5: kill}
    run.die(run.begin)
    run.traps = {}
    run.go_on(run.hear, "calculate 2 + 2")
    return set(run.on_record()[0]), "answered"


@happening
def a_limit_is_reached(run, by, request):
    assert run.begin("--set", "max_steps=3").exit_code == 1
    run.go_on(run.resume, by, max_steps=10)
    return ALL, "completed"


@happening
def the_models_server_is_down(run, by, request):
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    run.model = "openai:any"
    run.environment = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": nobody}
    done = run.begin("--model", run.model, task="Go.")
    assert done.exit_code == 1
    assert "The model for 'think' did not answer" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("continue with: replan resume")
    server = request.getfixturevalue("openai_server")(
        {
            "think": f"---\ncomplexity: complex\n---\n{PLAN}",
            "feedback": "---\nverdict: complete\n---\nThe answer.",
        }
    )
    run.environment["OPENAI_BASE_URL"] = server.base_url
    run.go_on(run.resume, by)
    return ALL, "completed"


@happening
def postgresql_restarts(run, by, request):
    server = request.getfixturevalue("postgres_server")
    run.where = server.dsn

    async def restart(_):
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)

    run.traps = {2: restart, 5: interrupt}
    assert run.begin().exit_code == 130
    server.kill()
    server.start()
    run.traps = {6: restart}
    run.go_on(run.resume, by)
    return ALL, "completed"


@happening
def the_disk_is_full(run, by, request):
    with request.getfixturevalue("monkeypatch").context() as patch:
        patch.setattr(opening, "open_storage", on_a_small_disk)
        done = run.begin()
    assert done.exit_code == 1
    assert "The disk is full" in done.stderr
    assert "continue with: replan resume" in done.stderr
    free_the_disk(run.where)
    run.go_on(run.resume, by)
    return ALL, "completed"


@happening
def it_is_killed_between_its_log_and_its_checkpoint(run, by, request):
    run.dies_behind = 6
    run.die(run.begin)
    run.dies_behind = 0
    assert (run.on_record()[0].keys(), {*run.goes_on_at()}) == (ALL, {"specialist_worker"})
    run.go_on(run.resume, by)
    assert (Counter(run.effects), run.goes_on_at()) == (Counter(ALL), ())
    assert Counter(run.completed()) == Counter(ALL)
    return ALL, "completed"


@asynccontextmanager
async def on_a_small_disk(where, **options):
    """Storage that has no room left after a few results; nobody waits for it."""
    async with open_storage(where, **{**options, "patience": 0.2}) as storage:
        if where.startswith("postgresql"):
            with psycopg.connect(where, autocommit=True) as other:
                other.execute(
                    "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    "IF (SELECT count(*) FROM replan_log WHERE key LIKE 'result/%') >= 2 THEN "
                    "RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END IF; "
                    "RETURN NEW; END $$"
                )
                other.execute(
                    "CREATE TRIGGER no_space BEFORE INSERT ON replan_log "
                    "FOR EACH ROW EXECUTE FUNCTION no_space()"
                )
        else:
            # The limit is one of the connection that writes.
            await storage.checkpointer.database.write(leave_pages)
        yield storage


def leave_pages(connection):
    ((count,),) = connection.query("PRAGMA page_count")
    connection.query(f"PRAGMA max_page_count = {count + PAGES}")


def free_the_disk(where):
    if where.startswith("postgresql"):
        with psycopg.connect(where, autocommit=True) as other:
            other.execute("DROP TRIGGER no_space ON replan_log")


DOORS = {"sqlite": ["terminal", "python"], "postgres": ["python", "terminal"]}
CELLS = [
    (name, storage, doors[at % 2])
    for at, name in enumerate(HAPPENINGS)
    for storage, doors in DOORS.items()
    if name != "postgresql restarts"
]
CELLS += [("postgresql restarts", "postgres", by) for by in DOORS["postgres"]]


@pytest.mark.parametrize(("name", "storage", "by"), CELLS)
def test_nothing_finished_is_done_again_swapped_or_lost(name, storage, by, tmp_path, request):
    is_own = name == "postgresql restarts"
    where = str(tmp_path / "runs.db")
    if storage == "postgres" and not is_own:
        where = request.getfixturevalue("postgres_database")
    run = KeptRun(tmp_path, where)
    steps, outcome = HAPPENINGS[name](run, by, request)
    # Whatever is asked of it once more, it is over.
    run.go_on(run.resume, by)
    recorded, state = run.on_record()
    kept = state["execution_history"][0].results.results if outcome == "answered" else {}
    results = {**kept, **state["current_specialist_results"]}.values()
    texts = {each.step_id: each.text for each in results if not each.is_failed}
    assert state["outcome"] == outcome
    assert (run.again, run.lost) == (Counter(), Counter())
    assert texts == recorded == {step: text_of(step) for step in steps}
