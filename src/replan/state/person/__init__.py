"""What a person is asked and says: answers, decisions, verdicts, and edits of the plan."""
