"""Import an object by `module:function`, from installed packages or the file's own folder."""

import importlib
import re
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic_core import PydanticCustomError

from replan.base.declared.part import field_error
from replan.base.failures import describe

_WORD = re.compile(r"\w+")
_DEFINED = re.compile(r"(?m)^(?:async +)?(?:def|class) +(\w+)")
_DEFINES_UNSEEN = {"__getattr__", "exec", "globals", "setattr", "vars"}
"""Words of a module that may have names which its source does not contain."""

_FORM = "Write module:function, as in team_tools:search."


def import_object(reference: str, folder: Path | None) -> Any:
    module_name, attribute = _module_and_attribute(reference)
    module = target = _import_module(module_name, folder)
    for part in attribute.split("."):
        try:
            target = getattr(target, part)
        except Exception as error:
            # Getting an attribute may run code of the module.
            raise _no_attribute(module, attribute, part, error) from error
    return target


def stand_in(reference: str, folder: Path) -> Callable[..., Any]:
    """Return something in place of what a reference names, without running any code of it."""
    module_name, attribute = _module_and_attribute(reference)
    top = module_name.partition(".")[0]
    importlib.invalidate_caches()
    own = PathFinder.find_spec(top, [str(folder)])
    if own is None and find_spec(top) is None:
        raise _no_module(module_name, folder)
    if own is not None and own.origin is not None and module_name == top:
        _check_mentioned(attribute, module_name, Path(own.origin))

    # A tool must have a docstring.
    def not_imported(request: str) -> str:
        """A placeholder for something that is not imported."""
        raise NotImplementedError(reference)

    not_imported.__name__ = name_in(reference)
    return not_imported


def _check_mentioned(attribute: str, module_name: str, path: Path) -> None:
    """Refuse a name that the source of a module does not contain, so that nothing can define it."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return  # only an import can tell
    words, name = set(_WORD.findall(source)), attribute.partition(".")[0]
    if name not in words and not words & _DEFINES_UNSEEN and " import *" not in source:
        raise _no_such_name(module_name, attribute, name, _DEFINED.findall(source))


def name_in(reference: str) -> str:
    return reference.rpartition(":")[2].rpartition(".")[2]


def _module_and_attribute(reference: str) -> tuple[str, str]:
    module_name, colon, attribute = reference.partition(":")
    parts = [*module_name.split("."), *attribute.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise field_error("bad_reference", "This names nothing that can be imported.", _FORM)
    return module_name, attribute


def _import_module(name: str, folder: Path | None) -> ModuleType:
    importlib.invalidate_caches()
    if folder is not None:
        _check_not_hidden(name.partition(".")[0], folder)
    try:
        with _on_path(folder) if folder is not None else nullcontext():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise _no_module(name, folder) from error
    except (Exception, SystemExit) as error:
        # Foreign code; whatever it raises is a mistake of the file that names it.
        raise _broken(name, error) from error


def _check_not_hidden(top: str, folder: Path) -> None:
    """Refuse a module of your own whose name a module that is loaded already has."""
    loaded, own = sys.modules.get(top), PathFinder.find_spec(top, [str(folder)])
    if loaded is None or own is None or own.origin is None:
        return
    origin = getattr(loaded.__spec__, "origin", None) or getattr(loaded, "__file__", None)
    if origin is None or Path(origin).resolve() != Path(own.origin).resolve():
        reason = f"Another module called '{top}' is already loaded."
        raise field_error("module_hidden", reason, f"Give {Path(own.origin).name} its own name.")


@contextmanager
def _on_path(folder: Path) -> Generator[None]:
    entry = str(folder)
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        # An imported module may have changed the path itself.
        if entry in sys.path:
            sys.path.remove(entry)


def _no_module(name: str, folder: Path | None) -> PydanticCustomError:
    module_names = sorted(path.stem for path in folder.glob("*.py")) if folder is not None else []
    near = get_close_matches(name, module_names, 1)
    reason = f"There is no module '{name}', neither installed nor in the folder of the file."
    fix = f"Did you mean {near[0]}?" if near else f"Install it, or write {name}.py there."
    return field_error("no_module", reason, fix)


def _no_attribute(
    module: ModuleType, attribute: str, part: str, error: Exception
) -> PydanticCustomError:
    if not isinstance(error, AttributeError):
        return _broken(module.__name__, error)
    return _no_such_name(module.__name__, attribute, part, dir(module))


def _no_such_name(
    module_name: str, attribute: str, part: str, names: Iterable[str]
) -> PydanticCustomError:
    near = get_close_matches(part, [name for name in names if not name.startswith("_")], 1)
    reason = f"The module '{module_name}' has no '{attribute}'."
    fix = f"Did you mean {near[0]}?" if near else "Check the name of the function."
    return field_error("no_function", reason, fix)


def _broken(name: str, error: BaseException) -> PydanticCustomError:
    reason = f"The module '{name}' cannot be imported: {describe(error).rstrip('.')}."
    return field_error("broken_module", reason, "Fix the module, or install what it needs.")
