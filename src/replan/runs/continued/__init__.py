"""How a run continues: after a rest or a limit, or as a person corrects one of its steps."""
