"""The order of jobs: by priority, then the tenants of a queue take turns.

Each waiting job has a turn, and is as urgent as its priority says less its turn. A new job of a
tenant is behind the tenant's other jobs, and not behind those of others: its turn is one more than
the last of its tenant, but at least that of the job that comes next. So a tenant with a thousand
jobs is a thousand turns ahead, and the first job of another one is next (start-time fair queueing).
"""

MOST_LEVEL = 9
"""Priorities are from -9 to 9."""

STEP = 100_000_000
"""Turns between two priorities."""

_OF_LEVEL = """
status = 'todo' AND queue_name = %(queue)s
AND priority > %(level)s * 100000000 - 100000000 AND priority <= %(level)s * 100000000
"""
TURNS = f"""
SELECT greatest(
    (SELECT %(level)s * 100000000 - max(priority) FROM procrastinate_jobs WHERE {_OF_LEVEL}),
    (SELECT %(level)s * 100000000 - min(priority) + 1 FROM procrastinate_jobs
        WHERE {_OF_LEVEL} AND args ->> 'tenant' = %(tenant)s),
    0
) AS turn
"""
"""The turn of a new job; nulls, where nothing waits, do not count."""


def priority_of(level: int, turn: int) -> int:
    """What Procrastinate orders a job by."""
    return level * STEP - min(turn, STEP - 1)
