"""The workers: every kind keeps the contract of `replan.ports.specialist_port`."""
