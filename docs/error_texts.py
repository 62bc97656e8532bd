"""Every text of an error, read from the code, so that a search of the site finds it."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import replan
import replan.base.errors as replan_errors
from replan.server.problems import RefusedError

SOURCE = Path(replan.__file__).parent
LEFT = "..."
CODE = re.compile(r"[a-z]+(_[a-z]+)*")
# What is filled in later; `{en: ...}` is a text that people write.
PLACE = re.compile(r"\{\w+\}")
# Parameters that hold what people read, in the order in which they read it.
READ = ("args", "problem", "reason", "detail", "fix")
KINDS = {
    name: kind
    for name, kind in {**vars(replan_errors), RefusedError.__name__: RefusedError}.items()
    if inspect.isclass(kind) and issubclass(kind, replan_errors.ReplanError) and name[0] != "_"
}
MISTAKES = "mistakes"
LEAST = 8
# What makes one mistake of a list: a code, what is wrong, and the fix.
MAKERS = {
    "broken", "refused", "refuse", "valued", "_tell", "_mistake", "bad_field",
    "Misfit", "Mistake", "Refusal", "UnplacedMistake", "mistake", "mistake_at", "rule_error",
    "field_error", "Seat",
}  # fmt: skip
# Where what is wrong and the fix are among the arguments, behind a field and its value, or a name.
TOLD_AT = {
    "mistake": slice(2, 4), "mistake_at": slice(2, 4), "UnplacedMistake": slice(2, 4),
    "Seat": slice(1, 2),
}  # fmt: skip


@dataclass(frozen=True)
class ErrorText:
    """A text as it stands in the code; `...` stands for names, values and numbers."""

    kind: str
    text: str


def error_texts() -> list[ErrorText]:
    """Every text of an error, by its class; those of listed mistakes come last."""
    codes = [file.read_text("utf-8") for file in sorted(SOURCE.rglob("*.py"))]
    reader = _Reader()
    for code in codes:
        reader.learn(ast.parse(code))
    for code in codes:
        if any(f"{name}(" in code for name in (*KINDS, *MAKERS)):
            reader.read(ast.parse(code))
    return sorted(reader.found, key=lambda each: (each.kind == MISTAKES, each.kind, each.text))


class _Reader(ast.NodeVisitor):
    """Goes through a file in its order, so that it knows the newest text of each name."""

    def __init__(self) -> None:
        self.found: set[ErrorText] = set()
        self.known: dict[str, list[str]] = {}
        self.given: dict[str, list[str]] = {}
        self.inside = ""

    def learn(self, module: ast.Module) -> None:
        """Note which functions give sentences: their names stand for these texts."""
        for function in _statements(module):
            if isinstance(function, ast.FunctionDef):
                within = _statements(function)
                values = [each.value for each in within if isinstance(each, ast.Return)]
                texts = [text for each in values if each for text in _texts(each, {})]
                if said := [each for each in texts if " " in each and re.match(r"\w.*\.$", each)]:
                    self.given.setdefault(f"{function.name}()", []).extend(said)

    def read(self, module: ast.Module) -> None:
        self.known = dict(self.given)
        for node in module.body:  # a function may use what stands below it
            if isinstance(node, ast.Assign):
                self.visit_Assign(node)
        self.visit(module)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        around, self.inside = self.inside, node.name
        self.generic_visit(node)
        self.inside = around

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._within(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._within(node)

    def _within(self, node: ast.AST) -> None:
        around, self.known = self.known, dict(self.known)
        self.generic_visit(node)
        self.known = around

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        texts = [each for each in _texts(node.value, self.known) if " " in each]
        for target in node.targets:
            if isinstance(target, ast.Name) and texts:
                self.known[target.id] = texts

    def visit_Call(self, node: ast.Call) -> None:
        self.found.update(_of_node(node, self.known, self.inside))
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        self.found.update(_of_node(node, self.known, self.inside))
        self.generic_visit(node)


def _statements(around: ast.AST) -> Iterator[ast.AST]:
    """The statements inside one, at any depth, without their expressions."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(around, block, ()):
            yield each
            yield from _statements(each)


def _of_node(
    node: ast.Call | ast.Tuple, known: Mapping[str, list[str]], inside: str
) -> Iterator[ErrorText]:
    kind, parts = _parts(node, inside)
    for texts in product(*(_texts(part, known) for part in parts)):
        text = re.sub(r"\s+", " ", " ".join(_ended(each) for each in texts if each.strip(". ")))
        # The bare form of a class, such as `...: ... (got ...). ...`, would be found by everything.
        if len(re.findall(r"[A-Za-z]", text)) >= LEAST:
            yield ErrorText(kind, text)


def _parts(node: ast.Call | ast.Tuple, inside: str) -> tuple[str, list[ast.expr]]:
    """The class of an error, and the expressions that make its text."""
    if isinstance(node, ast.Tuple):
        return MISTAKES, _coded(node.elts) if len(node.elts) == 3 else []  # noqa: PLR2004
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name == "__init__" and inside in KINDS:
        return inside, _bound(node, KINDS[inside].__mro__[1])
    if name in KINDS:
        return name, _bound(node, KINDS[name])
    if name not in MAKERS:
        return MISTAKES, []
    if name in TOLD_AT:
        return MISTAKES, node.args[TOLD_AT[name]]
    given = [*node.args, *(each.value for each in node.keywords)]
    told = {each.arg: each.value for each in node.keywords if each.arg in READ}
    return MISTAKES, _coded(given) or [told[each] for each in READ if each in told]


def _bound(call: ast.Call, kind: type) -> list[ast.expr]:
    """The arguments of an error that hold its text."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return []
    names = [each for each in inspect.signature(kind.__init__).parameters if each != "self"]
    given = dict(zip(names, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg}
    return [given[each] for each in READ if each in given]


def _coded(given: list[ast.expr]) -> list[ast.expr]:
    """What stands behind a code in small letters, if it is sentences."""
    codes = [
        at
        for at, each in enumerate(given)
        if isinstance(each, ast.Constant) and CODE.fullmatch(str(each.value))
    ]
    if codes:
        rest = given[codes[-1] + 1 :]
        said = [*_plain(rest)]
        return rest if said and said[-1].rstrip().endswith((".", LEFT)) else []
    # The field, its value, the problem and the fix, without a code.
    return given[-2:] if len(given) == 4 else []  # noqa: PLR2004


def _plain(given: list[ast.expr]) -> Iterator[str]:
    for each in given:
        yield from _texts(each, {})


def _texts(part: ast.expr, known: Mapping[str, list[str]]) -> list[str]:  # noqa: PLR0911 - cases
    """The texts that an expression may give; what is not written there is left out."""
    match part:
        case ast.Constant(value=str(text)):
            return [PLACE.sub(LEFT, text)]
        case ast.JoinedStr(values=values):
            pieces = [_texts(each, known) for each in values]
            return ["".join(each) for each in product(*pieces)][:20]
        case ast.FormattedValue(value=ast.Name() as name):
            return known.get(name.id, [LEFT])
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [a + b for a, b in product(_texts(left, known), _texts(right, known))]
        case ast.IfExp(body=body, orelse=other):
            return [*_texts(body, known), *_texts(other, known)]
        case ast.Name(id=name):
            return known.get(name, [LEFT])
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return known.get(f"{name}()", [LEFT])
    return [LEFT]


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":", LEFT)) else f"{text}."
