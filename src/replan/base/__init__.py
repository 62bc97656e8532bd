"""What knows no rule of plans: errors, declared parts, texts, secrets, values, event loops."""
