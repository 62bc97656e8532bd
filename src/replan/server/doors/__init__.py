"""What is behind the addresses of the server: runs, teams, chat clients, MCP clients."""
