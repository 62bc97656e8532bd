"""The kinds of specialists: each fulfils the contract of `replan.ports.specialist_port`."""
