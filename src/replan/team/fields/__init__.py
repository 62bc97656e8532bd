"""The kinds of fields that a team has beside plain texts and numbers.

In Python a field is given what it holds; in a file, text that names it. One validator takes both:
where a file is read, its context is what stands around the file.
"""
