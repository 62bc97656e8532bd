"""An MCP server of a shop, for `examples/mcp_tools.py`: `python shop_server.py`."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

STOCK = {"pencils": 3, "paper": 40}

server = MCPServer("shop")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def stock(article: str) -> str:
    """Return how many pieces of an article are in stock."""
    return f"{STOCK[article]} {article}"


@server.tool()
def order(article: str, amount: int) -> str:
    """Order an amount of an article; it is paid for."""
    return f"ordered {amount} {article}"


if __name__ == "__main__":
    server.run()
