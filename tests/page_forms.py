"""The forms of pages, read and sent as a browser does it."""

import asyncio
import re
from html import unescape


async def form(client, path, number=0, **headers):
    """The fields and the address of a form of a page, as a browser would send it untouched."""
    page = await client.get(path, **headers)
    assert page.status_code == 200, page.text
    return parsed(page.text, number)


def parsed(text, number=0):
    found = re.findall(
        r'<form class="act" method="post" action="([^"]*)".*?</form>', text, re.DOTALL
    )
    whole = re.findall(r'<form class="act".*?</form>', text, re.DOTALL)[number]
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', whole)
    texts = re.findall(r'<textarea name="([^"]*)"[^>]*>\n?(.*?)</textarea>', whole, re.DOTALL)
    return unescape(found[number]), {name: unescape(value) for name, value in fields + texts}


async def sent(client, path, fields, status=303, **options):
    answer = await client.post(path, data=fields, **options)
    assert answer.status_code == status, answer.text
    return answer


async def rested(client, where, until):
    """The page of a run once it stands so; each look is answered when the run was read anew."""
    return await seen(client, where, f'class="badge o-{until}')


async def seen(client, where, text):
    """A page once it has a text."""
    async with asyncio.timeout(10):
        while True:
            page = (await client.get(where)).text
            if text in page:
                return page
