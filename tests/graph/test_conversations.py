"""What models say and what becomes of it, as pages have it that `asked.py` carries out.

Where it matters what a server of models sends, a page is carried out over HTTP, too.
"""

import os
from pathlib import Path

import pytest

from asked import Asked
from replan.testing import ScriptedModel
from transcripts import sections_of
from two_ways import OverHttp

PAGES = sorted((Path(__file__).parent / "conversations").glob("*.md"))
OVER_HTTP = ("cut_replies", "odd_replies")
SESSIONS = [
    pytest.param(page, name, way, id=f"{page.stem}: {name}{' over HTTP' * (way is OverHttp)}")
    for page in PAGES
    for name in sections_of(page)
    for way in (ScriptedModel, OverHttp)
    if name and (way is ScriptedModel or page.stem in OVER_HTTP)
]


@pytest.mark.parametrize(("page", "name", "way"), SESSIONS)
async def test_of_what_models_say_becomes_what_the_page_has(page, name, way):
    sections = sections_of(page)
    told = sections[name]
    asked = Asked(sections[""], told)
    with way(asked.script) as model:
        now = await asked.carry_out(told, model)
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        page.write_text(page.read_text("utf-8").replace(told, now), "utf-8")
        told = now
    assert now == told
