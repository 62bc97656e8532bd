"""The forms in which a reply comes: front matter, tags, JSON, fences, thoughts."""
