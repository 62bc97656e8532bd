"""Sixty mistakes that people make: each message has the cause and something to type, on a screen.

A table: what is typed, the cause that is named, and what the fix says.
"""

import re
import shlex
import sys

import pytest
from typer.testing import CliRunner

from replan import Host, Specialist, StorageError, Team, ask_user, open_storage
from replan.cli.main import app
from served import served

MEMBER = "  - {name: clerk, intended_use: Files., run: 'tools_here:clerk'}\n"
OK = f"host: offline\nspecialists:\n{MEMBER}"
FILES = {
    "tools_here.py": 'def clerk(context):\n    return "filed"\n\n\nnumber = 7\n',
    "ok.yaml": OK,
    "plan.md": "- [ ] 1. File it @clerk\n",
    "broken.md": "- [ ] 1. File it @clrk\n",
    "box.md": "- [ ] 1. A @clerk\n- [x 2. B @clerk\n",
    "empty.md": "\n",
    "empty.yaml": "",
    "no.db": "this is no database " * 20,
}

# What is typed after `replan`, the cause, the fix.
TYPED = (
    ("rnu plan.md", "No such command 'rnu'", "'run'"),
    ("answer last x", "No such command 'answer'", "replan resume RUN --answer KEY=TEXT"),
    ("new agent x", "No such command 'agent'", "pipeline"),
    ("run", "Missing argument 'TASK|PLAN.md'", "A task in words, or a plan document"),
    ("resume", "Missing argument 'RUN'", "`last`"),
    ("run plan.md more words --team ok.yaml", "extra argument", "in quotes"),
    ("chat ok.yaml", "extra argument", "--team ok.yaml"),
    ("edit last plan.md", "extra argument", "--plan plan.md"),
    ("resume last --answer", "'--answer' requires an argument", "--answer VALUE"),
    ("run plan.md --aprove", "No such option: --aprove", "--approve"),
    ("run plan.md --limit max_cost=1", "No such option: --limit", "Did you mean --set?"),
    ("doctor --team ok.yaml", "No such option: --team", "--storage"),
    ("run plan.md --approve sometimes", "not 'sometimes'", "never, plan, revisions, always"),
    ("run plan.md --set max_cost", "max_cost has no value", "max_cost=NUMBER"),
    ("run plan.md --set step_tiemout=5", "is not a limit", "step_timeout"),
    ("run plan.md --set max_rounds=many", "must be a whole number", "max_rounds=NUMBER"),
    ("run plan.md --set max_rounds=0", "is too small", "1 or more"),
    ("run plan.md --label user", "--label user has no value", "NAME=VALUE"),
    ("run plan.md --dir nowhere", "there is no 'nowhere'", "Check the path"),
    ("run plan.md --team teem.yaml", "there is no 'teem.yaml'", "Check the path"),
    ("run plan.md --team ok.yaml --plan-out nowhere/p.md", "there is no such folder", "Create it"),
    ("run plan.md --model gpt-5", "names no provider", "openai:NAME"),
    ("run plan.md --model opnai:gpt-5", "'opnai' is not a known provider", "openai:NAME"),
    ("run plan.md --model openai:gpt-5", "OPENAI_API_KEY is not set", "Set OPENAI_API_KEY"),
    ("run x --model m --base-url localhost:1", "not the address of a server", "http://"),
    ("run plan.md --storage redis://x", "this kind of storage", "postgresql://user@host/database"),
    ("run plan.md --storage no.db", "not a SQLite database", "another path"),
    ("run missing.md", "no plan document 'missing.md'", "Check the path"),
    ("run empty.md --team ok.yaml", "'empty.md' is empty", "- [ ] 1. What to do @SPECIALIST"),
    ("run broken.md --team ok.yaml", "@clrk, whom the team does not have", "@clerk"),
    ("run box.md --team ok.yaml", "cannot be read as one", "- [x] 2. B @clerk"),
    ("run plan.md --team empty.yaml", "The file is empty", "`replan init`"),
    ("show last --storage nofile.db", "no storage 'nofile.db'", "`replan run` creates one"),
    ("show last --attempt 3", "--attempt needs a step", "--step"),
    ("retry last two", "not a whole number", "such as 2"),
    ("runs --since yesterday", "yesterday is not a time", "2026-01-31"),
    ("runs --limit 0", "is too small", "1 or more"),
    ("runs --outcome faild", "faild does not exist", "failed"),
    ("stats --by colour", "'colour' is not one of the choices", "day, team, specialist"),
    ("graph ok.yaml", "neither a plan nor a run", "--team ok.yaml"),
    ("serve ok.yaml --port 99999", "is too large", "65535 or less"),
    ("serve ok.yaml --tokens none.yaml", "no such file", "Check the path"),
    ("worker --team ok.yaml --storage runs.db", "need PostgreSQL", "--storage postgresql://"),
)

# A team file, the cause, the fix.
WRITTEN = (
    (f"host: offline\nmax_cost: 1\nspecialists:\n{MEMBER}", "max_cost", "under limits"),
    (
        f"host: {{model: offline, limits: {{}}}}\nspecialists:\n{MEMBER}",
        "host.limits",
        "at the top",
    ),
    (f"host: offline\nspecialist:\n{MEMBER}", "specialist: there is no", "specialists?"),
    (OK.replace("intended_use: Files., ", ""), "intended_use: this is missing", "Add intended_use"),
    (OK.replace(":clerk", ":clrk"), "has no 'clrk'", "Did you mean clerk?"),
    (OK.replace("tools_here:", "toolz:"), "no module 'toolz'", "toolz.py"),
    (OK.replace("tools_here:", ""), "nothing that can be imported", "module:function"),
    (OK.replace(":clerk", ":number"), "cannot be called", "a function"),
    (OK.replace("name: clerk", "name: my clerk"), "cannot be the name", "Use letters"),
    (OK.replace("Files.,", "Files., retries: 3,"), "retries", "step_retries"),
    (OK.replace("Files.,", "Files., timeout: 3,"), "timeout", "step_timeout"),
    (OK.replace("Files.,", "Files., effects: none,"), "not one of the choices", "'unsafe'"),
    (f"{OK}limits: {{max_costs: 1}}\n", "limits.max_costs", "Did you mean max_cost?"),
    (f"{OK}limits: {{max_cost: 1 EUR}}\n", "must be a number", "without quotes"),
    (f"{OK}currency: in euros\n", "not the name of a currency", "EUR"),
    (f"{OK}prices: {{gpt: {{input: 1}}}}\n", "prices.gpt.output: this is missing", "Add output"),
    (f"{OK}tool_servers: {{files: {{}}}}\n", "no way to be reached", "command, url"),
    (f"{OK}knowledge: nowhere\n", "there is no folder", "Create it"),
    (f"{OK}name: [{', '.join(['abcdefghij'] * 200)}]\n", "name: this must be text", "Write text"),
    (OK.replace("offline", '"offline'), "This is not YAML", "quotes"),
)

# A request, its body, the cause, the fix.
SENT = (
    ("POST /runs", {}, "there is nothing to do", "Give a task or a plan"),
    ("POST /runs", {"task": 5}, "task: this must be text", "Write text"),
    ("POST /runs", {"task": "x", "setings": {}}, "setings: there is no such field", "settings?"),
    ("POST /runs", {"task": "x", "team": "shop"}, "no such team", "house"),
    ("POST /runs", {"task": "x", "run_id": "a b"}, "run_id: this has characters", "A-Za-z0-9"),
    ("POST /runs", {"plan": "- [ ] 1. A @nobody\n"}, "whom the team does not have", "@clerk"),
    ("POST /runs/zzz/answers", {"answers": {"1/q/1": "x"}}, "no run 'zzz'", "GET /runs"),
    ("POST /runs/w/answers", {"answers": {"9/q/1": "x"}}, "does not wait for this", "1/clerk/1"),
    ("POST /runs/w/answers", {"1/q/1": "x"}, "1/q/1: there is no such field", "answers"),
    ("POST /runs/w/retry", {"step": "two"}, "must be a whole number", "a number"),
    ("GET /runs?outcome=done", None, "outcome[0]: this is not one of the choices", "'completed'"),
    ("GET /runs?limit=0", None, "limit: this is too small", "1 or more"),
    ("GET /runs?since=yesterday", None, "since: this is not a time", "2026-01-31T09:30:00Z"),
    ("GET /runs?label=user", None, "it is not a label", "NAME:VALUE"),
    ("GET /runs/w/events?after=999", None, "no event of this number", "from 0 to"),
    ("GET /run", None, "nothing at /run", "GET /openapi.json"),
)


def faults_in(text, cause, fix):
    """What is wrong with a message to a person; nothing if all is well."""
    # The frame that a terminal draws round it, and its line ends, are no part of it.
    said = " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())
    lines = text.rstrip().splitlines()
    checks = {
        "no cause": cause in said,
        "no fix": fix in said,
        "no screen": len(lines) <= 20 and len(text) <= 900,
        "frames": "Traceback" not in text and 'File "' not in text,
        "an address": " at 0x" not in text,
        "words of a library": "Input should" not in text and "Value error" not in text,
    }
    return [name for name, is_well in checks.items() if not is_well]


def folder_with(tmp_path, monkeypatch):
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    # Another test has imported another file of this name.
    monkeypatch.delitem(sys.modules, "tools_here", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "REPLAN_STORAGE", "REPLAN_MODEL"):
        monkeypatch.delenv(name, raising=False)


def typed(words):
    result = CliRunner().invoke(app, shlex.split(words), env={"COLUMNS": "80"})
    unexpected = [] if isinstance(result.exception, SystemExit | None) else [result.exception]
    return result.stdout + result.stderr, result.exit_code, unexpected


def test_what_is_mistyped_at_the_terminal(tmp_path, monkeypatch):
    folder_with(tmp_path, monkeypatch)
    bad = {}
    for words, cause, fix in TYPED:
        text, code, found = typed(words)
        found += faults_in(text, cause, fix) + ([f"exit code {code}"] if code != 2 else [])
        bad |= {words: (found, text)} if found else {}
    assert bad == {}


def test_what_is_wrong_in_a_team_file(tmp_path, monkeypatch):
    folder_with(tmp_path, monkeypatch)
    bad = {}
    for content, cause, fix in WRITTEN:
        (tmp_path / "team.yaml").write_text(content)
        text, code, found = typed("run plan.md --team team.yaml")
        found += faults_in(text, cause, fix) + ([f"exit code {code}"] if code != 2 else [])
        found += [] if "team.yaml:" in text else ["no place"]
        bad |= {content: (found, text)} if found else {}
    assert bad == {}


async def test_what_is_wrong_in_a_request():
    clerk = Specialist("clerk", "Asks.", run=lambda _: ask_user("How many?"), effects="pure")
    bad = {}
    async with served(Team(Host("offline"), [clerk], name="house")) as client:
        run = {"plan": "- [ ] 1. Ask @clerk\n", "run_id": "w"}
        assert (await client.post("/runs", json=run)).status_code == 201
        while (await client.get("/runs/w")).json()["outcome"] != "waiting":
            pass
        for request, body, cause, fix in SENT:
            method, path = request.split()
            answer = await client.request(method, path, json=body)
            problem = answer.json()
            fixes = " ".join(each["fix"] for each in problem["mistakes"])
            found = faults_in(f"{problem['detail']} {fixes}", cause, fix)
            found += [] if 400 <= answer.status_code < 500 else [answer.status_code]
            bad |= {(request, str(body)): (found, problem)} if found else {}
    assert bad == {}


async def test_a_database_that_is_down_is_named_without_talk_of_runs():
    with pytest.raises(StorageError) as refused:
        async with open_storage("postgresql://nobody@127.0.0.1:1/x", patience=0.1):
            pass
    text = str(refused.value)
    assert faults_in(text, "server cannot be reached", "Start it, or fix the address") == []
    assert "resume" not in text
    assert "nobody" not in text
