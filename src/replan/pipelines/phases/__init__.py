"""The phases of an agent: who handles them, which one follows, and whether they have an end."""
