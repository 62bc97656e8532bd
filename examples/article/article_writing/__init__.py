"""The sub-thread in which the article is written."""
