"""The checkpoints of LangGraph, as a storage keeps them."""
