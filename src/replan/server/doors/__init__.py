"""The endpoints of the server: runs, teams, chat clients, MCP clients."""
