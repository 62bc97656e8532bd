"""A page that shows runs: pages from the server, by plain links and forms."""
