"""Product listings by conversation, without a key: a job over a real catalogue.

The program starts the REST service, and takes each turn as a server without a memory would: the job
travels in the metadata, through JSON. `--talk` lets you say something yourself; `--dsn` names
another database, such as postgresql://me@localhost/shop.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from catalogue import Catalogue
from service import served

from replan.jobs import JobSpec, job_processor, read_job_file
from replan.jobs.flow import run_flow

SAID = (
    "I want to publish a product",
    "PC-999",
    "publish PC-100",
    "edit PL-1",
    "title: Red desk lamp, price: -3",
    "title: Red desk lamp, price: 24.5",
    "启用 PL-1",
    "query, listing: PL-1",
)


def spec_at(url: str) -> JobSpec:
    """The job, for the service at an address."""
    return read_job_file(Path(__file__).with_name("listings.yaml")).replace(base_urls=[url])


async def turn(url: str, metadata: dict[str, Any] | None, said: str) -> tuple[str, dict[str, Any]]:
    """Take one turn. It stores nothing, so any process can take the next one."""
    processor = job_processor(spec_at(url))
    output = await run_flow(processor, metadata, [{"role": "user", "content": said}])
    return output.message.content, output.metadata.to_dict()


def talk(url: str, lines: Any, *, echo: bool) -> None:
    """Chat line by line."""
    opening, metadata = asyncio.run(turn(url, None, ""))
    print(opening)
    for line in lines:
        said = line.strip()
        if echo:
            print(f"> {said}")
        answer, metadata = asyncio.run(turn(url, metadata, said))
        metadata = json.loads(json.dumps(metadata))
        print(answer)


def main() -> None:
    """Start the service and chat."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--dsn", help="the database; else a SQLite file of its own")
    options.add_argument("--talk", action="store_true", help="say something yourself, line by line")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        catalogue = Catalogue(given.dsn or f"sqlite:///{folder}/listings.db")
        try:
            with served(catalogue, port=0) as url, suppress(KeyboardInterrupt):
                talk(url, sys.stdin if given.talk else SAID, echo=not given.talk)
        finally:
            catalogue.close()


if __name__ == "__main__":
    main()
