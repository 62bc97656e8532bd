"""What a process counts of its runs, in the form that Prometheus reads."""
