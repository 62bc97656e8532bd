"""The phases of a job: what each does, and which comes next."""
