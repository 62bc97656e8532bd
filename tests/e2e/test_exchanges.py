"""What programs and browsers are answered by our server, as the pages of `exchanges/` have it."""

import pytest

from exchanges import PAGES, check_section, names_on

SECTIONS = [(page, name) for page in sorted(PAGES.glob("*.md")) for name in names_on(page)]


@pytest.mark.parametrize(
    ("page", "name"), SECTIONS, ids=[f"{page.stem}: {name}" for page, name in SECTIONS]
)
async def test_requests_are_answered_as_the_page_has_it(page, name):
    await check_section(page, name)
