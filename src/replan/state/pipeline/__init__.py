"""The threads of pipelines: their values, paths and rows."""
