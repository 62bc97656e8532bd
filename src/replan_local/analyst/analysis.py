"""Find out what a step asks of which table, and answer it; all of it in one thread."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pydantic import Field, JsonValue

from replan.plan.model import Value
from replan_local.analyst.aggregation import aggregate, rows_of
from replan_local.analyst.comparison import compare_tables
from replan_local.analyst.file_choice import Fit, ask_nothing, best_fit, is_named
from replan_local.analyst.file_comparison import compare_files
from replan_local.analyst.file_names import names_given, names_in
from replan_local.analyst.given import (
    PARAMETERS,
    asks_by_parameters,
    given_question,
)
from replan_local.analyst.names import ColumnNames
from replan_local.analyst.parsing import parse_question
from replan_local.analyst.profile import profile
from replan_local.analyst.question import Question
from replan_local.analyst.tables import (
    Database,
    TableFile,
    UnreadableTableError,
    table_files,
    tables_here,
)
from replan_local.analyst.values import Values
from replan_local.analyst.wording import COMPARE, GROUPS, PROFILE
from replan_local.answer_table import MOST_ROWS, AnswerTable, tables_in
from replan_local.answering import SURE, Answer
from replan_local.folder import find_file
from replan_local.parameters import refuse_misspelt
from replan_local.refusals import CannotAnswerError
from replan_local.words import joined, words_of

_REVISION_NOTE = re.compile(r"\[revised:[^\]]{0,1000}\]")
_MOST_TABLES = 30
_GUESSED, _LOOSE = 0.7, 0.4
_ENOUGH = 2
_CUT = "more rows are not shown"


class Task(Value):
    """A step as the analyst reads it.

    Attributes:
        text: The step's line.
        brief: The free text under it; read only where the line is not enough.
        inputs: The texts of the results that it builds on, by step.
    """

    text: str
    brief: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    inputs: dict[int, str] = Field(default_factory=dict[int, str])


class Analysis:
    """One step's work on the tables of a folder; may be interrupted from another thread."""

    def __init__(self, directory: Path, task: Task) -> None:
        self._directory = directory
        self._task = task
        self._parameters = task.parameters
        self._database = Database()
        self._damaged: list[UnreadableTableError] = []
        self._files: tuple[TableFile, ...] = ()
        self._text = self._question_text = ""
        self._named: tuple[str, ...] = ()

    def answer(self) -> Answer:
        """Answer the step.

        Raises:
            CannotAnswerError: It cannot be answered; the message says why.
            ConfigurationError: DuckDB is not installed.
        """
        try:
            refuse_misspelt(self._parameters, PARAMETERS)
            self._files = table_files(self._directory)
            self._read(self._task.text)
            return self._by_line_or_brief()
        finally:
            self._database.close()

    def interrupt(self) -> None:
        """Stop the work; what it would have given is lost."""
        self._database.interrupt()

    def _by_line_or_brief(self) -> Answer:
        whole = f"{self._task.text}\n{self._task.brief}"
        if not self._task.brief.strip():
            return self._once()
        if ask_nothing(self._question_text):
            self._read(whole)
            return self._once()
        try:
            return self._once()
        except CannotAnswerError as refusal:
            self._read(whole)
            try:
                return self._once()
            except CannotAnswerError:
                # A brief is prose; what the line lacks is the better thing to tell.
                raise refusal from None

    def _once(self) -> Answer:
        return self._from_inputs() or self._from_files()

    def _read(self, text: str) -> None:
        self._text = _REVISION_NOTE.sub(" ", text)
        self._named, self._question_text = names_in(self._text, self._files)

    def _from_inputs(self) -> Answer | None:
        """Compare the tables of earlier results, if that is what the step asks for."""
        if self._named_files() or self._parameters or not COMPARE.search(self._text):
            return None
        tables = [
            table
            for step, result in sorted(self._task.inputs.items())
            for table in tables_in(result, _title_of(result, step))[:1]
        ]
        if len(tables) < _ENOUGH:
            return None
        try:
            table, findings = compare_tables(tables, words_of(self._text))
        except CannotAnswerError as refusal:
            return _side_by_side(tables, str(refusal))
        cut = any(_CUT in result for result in self._task.inputs.values())
        notes = ["An earlier table was cut; only its shown rows are compared."] if cut else []
        return _answer(table, findings, "from the results of earlier steps", notes)

    def _from_files(self) -> Answer:
        files = self._files
        chosen = [find_file(name, files, "table") for name in self._named_files()]
        sql = self._parameters.get("sql")
        if sql is not None:
            return self._run_sql(str(sql), chosen or files)
        if not files:
            message = f"There is nothing to analyse in the folder. {tables_here(files)}"
            raise CannotAnswerError(message)
        candidates = (chosen or list(files))[:_MOST_TABLES]
        self._damaged = list(self._database.open(candidates))
        if self._damaged and (chosen or len(self._damaged) == len(candidates)):
            raise self._damaged[0]
        by_text = not asks_by_parameters(self._parameters)
        if by_text and len(chosen) >= _ENOUGH and COMPARE.search(self._text):
            return self._compare(chosen)
        if by_text and self._wants_profile(chosen):
            return self._profiles(candidates)
        return self._aggregated(candidates, named=bool(chosen))

    def _named_files(self) -> tuple[str, ...]:
        return (
            names_given(self._parameters, self._files)
            or self._named
            or names_in(self._task.brief, self._files)[0]
        )

    def _run_sql(self, sql: str, files: Sequence[TableFile]) -> Answer:
        """Run the query of a person; only the tables that it names are opened."""
        folded = sql.casefold()
        used = [file for file in files if file.view.casefold() in folded]
        self._damaged = list(self._database.open(used))
        try:
            self._database.check(sql)
            columns, rows = self._database.select(sql, most=MOST_ROWS + 1)
        except CannotAnswerError:
            self._refuse_damaged(words_of(sql))
            raise
        lost = {each.file.view for each in self._damaged}
        used = [file for file in used if file.view not in lost]
        table = AnswerTable(title="Query", columns=columns, cells=tuple(rows[:MOST_ROWS]))
        notes = ["There are more rows than these."] if len(rows) > MOST_ROWS else []
        source = joined([file.name for file in used]) if used else "no file"
        return _answer(table, notes, source, ())

    def _wants_profile(self, chosen: Sequence[TableFile]) -> bool:
        """Whether the step asks for a description, or says nothing but the name of a file."""
        text = self._question_text
        if PROFILE.search(text) and not GROUPS.search(text):
            return True
        return bool(chosen) and ask_nothing(text)

    def _profiles(self, files: Sequence[TableFile]) -> Answer:
        """Describe the tables that the step names by a bare word, or else all of them."""
        words = words_of(self._question_text)
        self._refuse_damaged(words)
        named = [file for file in files if is_named(file, words)]
        lost = {each.file.view for each in self._damaged}
        parts: list[str] = []
        for file in named or files:
            if file.view in lost:
                continue
            try:
                table, findings = profile(self._database, file.view, file.name)
            except CannotAnswerError as refusal:
                if named or len(files) == 1:
                    raise
                self._damaged.append(UnreadableTableError(file, str(refusal)))
            else:
                parts.append(_answer(table, findings, "", ()).text)
        if not parts:
            raise self._damaged[0]
        notes = [f"- {each.note}" for each in self._damaged]
        text = "\n\n".join([*parts, "\n".join(notes)]).rstrip()
        return Answer(text=text, confidence=_GUESSED if notes else SURE)

    def _question(self, file: TableFile) -> Question:
        names = ColumnNames(self._database.columns(file.view), file.name)
        if asks_by_parameters(self._parameters):
            question = given_question(self._parameters, names)
            if question.condition:
                self._database.check(f"SELECT 1 WHERE ({question.condition}\n)")
            return question
        values = Values(self._database, file, names.columns)
        stem = frozenset(words_of(PurePosixPath(file.name).stem))
        try:
            return parse_question(self._question_text, names, stem, values.owner_of)
        except UnreadableTableError as refusal:
            self._damaged.append(refusal)
            raise

    def _aggregated(self, files: Sequence[TableFile], *, named: bool) -> Answer:
        fit = self._fit(files)
        question, file = fit.question, fit.file
        table, findings = aggregate(self._database, file.view, question)
        count = rows_of(self._database, file.view, question)
        source = "; ".join([f"{file.name}, {count} rows", *question.conditions_in_words])
        notes = [f"Guessed: {guess}." for guess in question.guessed]
        if not named and len(files) > 1:
            notes.append(f"No file was named; {file.name} is the one that fits.")
        notes += [each.note for each in self._damaged]
        return _answer(table, findings, source, notes)

    def _fit(self, files: Sequence[TableFile]) -> Fit:
        """The table that the step means; a damaged one that it names is the refusal."""
        words = words_of(self._question_text)
        lost = {each.file.view for each in self._damaged}
        readable = [file for file in files if file.view not in lost]
        try:
            fit = best_fit(readable, self._question, words)
        except CannotAnswerError as refusal:
            self._refuse_damaged(words)
            notes = [each.note for each in self._damaged if str(each) != str(refusal)]
            raise CannotAnswerError(" ".join([str(refusal), *notes])) from refusal
        if not is_named(fit.file, words, fit.question.groups):
            self._refuse_damaged(words, fit.question.groups)
        return fit

    def _refuse_damaged(self, words: Sequence[str], groups: Sequence[str] = ()) -> None:
        meant = [each for each in self._damaged if is_named(each.file, words, groups)]
        if meant:
            raise meant[0]

    def _compare(self, files: Sequence[TableFile]) -> Answer:
        table, findings = compare_files(self._database, files, words_of(self._question_text))
        return _answer(table, findings, joined([file.name for file in files]), ())


def _answer(
    table: AnswerTable, findings: Sequence[str], source: str, notes: Sequence[str]
) -> Answer:
    head = f"**{table.title}**" + (f" ({source})" if source else "")
    lines = "\n".join(f"- {line}" for line in (*findings, *notes))
    text = "\n\n".join(part for part in (head, table.markdown(), lines) if part)
    return Answer(text=text, confidence=_GUESSED if notes else SURE)


def _side_by_side(tables: Sequence[AnswerTable], reason: str) -> Answer:
    """Show tables that cannot be joined one after the other, and say so."""
    parts = [f"**{table.title}**\n\n{table.markdown()}" for table in tables]
    return Answer(text="\n\n".join([*parts, f"- {reason}"]), confidence=_LOOSE)


def _title_of(result: str, step: int) -> str:
    """What an earlier result calls itself."""
    found = re.match(r"\*\*(?P<title>[^*\n]+)\*\*", result.strip())
    return found["title"] if found else f"step {step}"
