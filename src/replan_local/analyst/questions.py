"""What the data analyst can be asked: the one list behind its card, its tests and its docs."""

from pydantic import Field

from replan.plan.model import Value


class QuestionKind(Value):
    """A kind of question.

    Attributes:
        capability: What the card says of it.
        examples: Steps of this kind that the sample tables in `examples/data` answer.
        parameters: What the parameters of a step may ask of this kind.
    """

    capability: str
    examples: tuple[str, ...] = ()
    parameters: dict[str, str | int] = Field(default_factory=dict[str, str | int])


QUESTIONS: tuple[QuestionKind, ...] = (
    QuestionKind(
        capability="profile a table: columns, ranges, missing values",
        examples=("Profile returns.csv", "Describe the columns of sales.csv"),
    ),
    QuestionKind(
        capability="total, sum, average, median, minimum, maximum or count per group",
        examples=(
            "Total the revenue by region from sales.csv",
            "Average revenue and median units per product in sales.csv",
            "Count of returns by reason in returns.csv",
            "Number of distinct products in sales.csv",
            "Maximum refund in returns.csv",
        ),
        parameters={"file": "sales.csv", "group_by": "region", "measure": "revenue"},
    ),
    QuestionKind(
        capability="daily, weekly, monthly, quarterly or yearly figures",
        examples=(
            "Monthly revenue in sales.csv",
            "Refund by quarter and region in returns.csv",
        ),
    ),
    QuestionKind(
        capability="top and bottom rows",
        examples=("Top 3 products by revenue in sales.csv", "Bottom 2 regions by units, sales.csv"),
        parameters={"file": "sales.csv", "group_by": "product", "measure": "revenue", "top": 3},
    ),
    QuestionKind(
        capability="only the rows that fit a condition",
        examples=(
            "Revenue by product where region = North in sales.csv",
            "Units by region in March in sales.csv",
            "Total revenue by region for Desk where units > 5, sales.csv",
        ),
    ),
    QuestionKind(
        capability="compare two groups, two files or the tables of two steps",
        examples=(
            "Compare revenue in North and South by product in sales.csv",
            "Compare sales.csv and returns.csv by region",
        ),
    ),
    QuestionKind(
        capability="one read-only SQL query (parameter sql)",
        parameters={
            "sql": "SELECT region FROM sales GROUP BY 1 HAVING sum(units) > 500",
        },
    ),
)
"""What can be asked. Case, number and order of the words do not matter, files may be named anywhere
in the step, and Chinese words for the same are read too. Whatever else a step says is either a
value of a column or told as not understood; a name that is nearly one of the table's is refused
with the nearest one. The same may be asked by parameters: `file`, `group_by`, `measure`,
`aggregate`, `where` (a condition in SQL, or columns with values), `top`, or `sql` alone.
"""
