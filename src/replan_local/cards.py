"""What each specialist says of itself, with the forms of its commands."""

from replan.state.team import SpecialistCard

CARDS = (
    SpecialistCard(
        name="data_analyst",
        intended_use="Exact figures from CSV, Parquet and JSON files of the folder; a step is one "
        "command, or has the parameter sql.",
        capabilities=(
            "list tables",
            "total COLUMN [by COLUMN] from TABLE [where COLUMN is VALUE] [top N]",
            "compare step N and step M by COLUMN",
        ),
    ),
    SpecialistCard(
        name="librarian",
        intended_use="Passages in the notes of the folder (txt, md, rst, html); a step is one "
        "command.",
        capabilities=('search notes for "WORDS" [in FILE] [top N]',),
    ),
    SpecialistCard(
        name="calculator",
        intended_use="Exact arithmetic on numbers and on figures of earlier steps; a step is one "
        "command.",
        capabilities=("calculate EXPRESSION", 'calculate step 1["total cost"]["Berlin"] / step 2'),
    ),
    SpecialistCard(
        name="writer",
        intended_use="One report file of the results of earlier steps; a step is one command.",
        capabilities=('write report ["TITLE"]',),
    ),
)
