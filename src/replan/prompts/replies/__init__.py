"""The replies of models: a small front matter and a body, read in many forms."""
