"""The names that programs read: schemas, fields and values of the OpenAPI document."""

import re
from functools import reduce
from pathlib import Path

from replan.server.app import ROUTERS
from served import DESCRIBED

GUIDE = Path(__file__).parents[3] / "docs/server.md"
SCHEMAS = DESCRIBED["components"]["schemas"]


def test_a_value_of_an_enumeration_has_no_blank():
    enumerations = [
        (name, field, value)
        for name, schema in SCHEMAS.items()
        for field, about in schema.get("properties", {}).items()
        for value in about.get("enum", ())
        if " " in str(value)
    ]
    assert enumerations == []
    assert "unknown_outcome" in SCHEMAS["PendingQuestion"]["properties"]["kind"]["enum"]


def test_every_address_is_in_the_table_of_the_guide():
    names = {"{run_id}": "ID", "{session_id}": "ID", "{ref}": "REF", "{team}": "NAME"}
    table = [line for line in GUIDE.read_text("utf-8").splitlines() if line.startswith("| `")]
    told = {
        path for line in table for path in re.findall(r"`((?:GET|POST|PUT|DELETE) \S+?)`", line)
    }
    told |= {"POST /runs/ID/skip"}  # beside that of retry, as `.../skip`
    addresses = {
        f"{method} {reduce(lambda path, name: path.replace(*name), names.items(), route.path)}"
        for router in ROUTERS
        for route in router.routes
        for method in route.methods
        if not route.path.startswith("/v1/")  # OpenAI's, which its clients know
    }
    assert addresses - told == set()


def test_every_address_may_fail():
    operations = [each for path in DESCRIBED["paths"].values() for each in path.values()]
    assert all("500" in each["responses"] for each in operations)
