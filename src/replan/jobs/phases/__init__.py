"""What happens in each phase of a job, and which phase comes next."""
