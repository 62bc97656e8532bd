"""What a developer declares of a job."""
