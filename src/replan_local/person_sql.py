"""SQL that a step brings along: how large it may be, and what it may not look at."""

import re

from replan_local.refusals import CannotAnswerError

LONGEST_SQL = 20_000
"""Characters of a query or a condition; a parser that is asked for more may not come back."""

MOST_TABLES = 24
"""Tables and stars in a query: what joins a table with itself over and over has millions of columns
before anything of it runs, and cannot be stopped."""

# In the tree of a query, as DuckDB writes it.
_TABLE = re.compile(r'"class":"STAR"|"type":"(?:BASE_TABLE|TABLE_FUNCTION|SUBQUERY)"')
# What reveals the database or the machine, and what runs a query that is not visible here.
_CATALOG = re.compile(
    r'(?i)"(?:function|table|schema|catalog)_name":"('
    r"duckdb_\w{1,60}|pragma_\w{1,60}|sqlite_(?:temp_)?(?:master|schema)|information_schema"
    r'|pg_catalog|pg_(?:views|settings)|query|query_table|current_setting|getenv)"'
)
_UNREADABLE = re.compile(r'\{"error":true.*"error_message":"(?P<reason>[^"\\]*)')


def check_length(sql: str) -> None:
    """Refuse SQL that is too long to be parsed."""
    if len(sql) > LONGEST_SQL:
        message = f"The SQL has {len(sql):,} characters; at most {LONGEST_SQL:,} are read."
        raise CannotAnswerError(message)


def check_tree(tree: str) -> None:
    """Refuse a query that looks at more than the tables, or at too many of them."""
    if found := _UNREADABLE.match(tree):
        raise CannotAnswerError(f"The query cannot be read: {found['reason']}.")
    if found := _CATALOG.search(tree):
        message = f"A query may look at the tables only; '{found[1]}' shows the database itself."
        raise CannotAnswerError(message)
    count = sum(1 for _ in _TABLE.finditer(tree))
    if count > MOST_TABLES:
        message = f"The query names tables and stars {count} times; at most {MOST_TABLES} are read."
        raise CannotAnswerError(message)
