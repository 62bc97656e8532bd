"""The librarian: passages of the texts of a folder, with file and line."""

from replan_local.library.librarian import Librarian

__all__ = ["Librarian"]
