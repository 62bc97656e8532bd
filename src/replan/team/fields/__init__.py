"""The kinds of fields that a team has in addition to plain texts and numbers.

In Python a field is given what it holds; in a file, text that names it. One validator takes both:
where a file is read, its context is what is around the file.
"""
