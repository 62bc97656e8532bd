"""What the terminal and the page say about a run, a plan or an answer, and nothing else."""
