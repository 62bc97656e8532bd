"""What a run asks of people, and what people ask of a run."""
