"""What is ahead of a plan, a job or a team that has not run."""
