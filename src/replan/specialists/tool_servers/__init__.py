"""Tools of MCP servers: the connection, its calls, their results, and what servers ask people."""
