"""The conversation as models see it, and facts about users: pure functions of the state."""
