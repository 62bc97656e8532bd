"""Serve the team, and take two turns of a session over HTTP, as an app does."""

import asyncio
import os
from pathlib import Path

import httpx2

from replan import open_server
from replan.team.team_file import read_team_file

file = read_team_file(Path(__file__).parent / "team.yaml", os.environ)
team = file.with_model(os.environ.get("REPLAN_MODEL"))


async def main() -> None:
    """Open the server, and send requests to it."""
    async with open_server({"shop": team.config}, storage="shop.db") as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
            for turn, said in enumerate(["Order desk lamps @order", "10"], 1):
                body = {"input": said, "turn_id": f"turn-{turn}"}
                answer = await client.post("/sessions/anna-1/turns", json=body)
                print(answer.status_code, answer.json()["response"])


asyncio.run(main())
