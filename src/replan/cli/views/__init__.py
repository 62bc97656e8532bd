"""What the terminal shows: a run, a plan, an answer, drawn and nothing else."""
