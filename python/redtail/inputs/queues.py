"""Queues written in Python: their interface, and how to find the class that an experiment names.

A queue is named `"my_queue.py:MyQueue"`, a file beside the experiment's, or
`"package.module:MyQueue"`, which is imported. The hash of its source is part of the scenario, so
that a result is never taken for one of a class that has changed. What else the class imports is
not looked at. Where the code lies, and whether it may be executed, is found out in `code` before.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import importlib.util
import inspect
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from redtail.errors import QueueError, SpecError
from redtail.inputs.code import ACCEPTED as _ACCEPTED
from redtail.inputs.code import Code, Refusal, Rule, folder_of, passed, split
from redtail.inputs.code import Wrong as _Wrong

if TYPE_CHECKING:
    from types import ModuleType

    from redtail._native import Packet


class Queue(Protocol):
    """A queue discipline of your own.

    It is made with a `redtail.QueueContext` and the keys of `params` as named arguments, once for
    every link and run. Times are seconds from the start of the run and never decrease.

    These methods are called if the class has them:

    - `next_wakeup(now) -> float | None`: when the queue, which holds packets back, wants to be
      asked again; asked for after each call of the others.
    - `on_wakeup(now) -> None`: that time has come.
    - `internals() -> tuple[float | None, float | None]`: the average and the probability of its
      control law, for time series.
    - `start_measuring(now) -> None`: the warm-up is over.
    - `report(now) -> dict[str, float]`: figures of its own; they become metrics `queue.NAME`.
    """

    def enqueue(self, packet: Packet, now: float) -> bool:
        """Take a packet: True if it waits from now on, False if it is dropped.

        Packets, this one and those that wait, can be marked (`packet.mark()`); those that wait can
        be dropped (`packet.drop()`) and must not be returned after that.
        """
        ...

    def dequeue(self, now: float) -> Packet | None:
        """Return the next packet to transmit; None while packets wait needs a `next_wakeup`.

        Not called when nothing waits. Packets can be marked and dropped here as well.
        """
        ...


QueueClass: TypeAlias = "type[Any]"

_METHODS = {"enqueue": "self, packet, now", "dequeue": "self, now"}

# Modules are loaded one at a time: threads that make plans share `sys.path` and `sys.modules`.
_LOADING = threading.RLock()
# The hash of the file that each module was imported from, when it was first looked at.
_IMPORTED: dict[str, str] = {}


@dataclass(frozen=True)
class Located:
    """A class by its name, so that another process can find it too.

    Attributes:
        name: as in the experiment.
        folder: what files and modules are looked for in.
        source: hash of its source.
        place: where the experiment names it, for messages.
    """

    name: str
    folder: str
    source: str
    place: str

    def load(self) -> QueueClass:
        """Return the class.

        Raises:
            QueueError: it is not what it was when the experiment was checked.
        """
        try:
            found, source = find(self.name, Path(self.folder))
        except _Wrong as wrong:
            _, problem, accepted = wrong.refusal
            raise QueueError(f"{self.place}: {problem}; accepted: {accepted}") from wrong
        if source != self.source:
            raise QueueError(
                f"{self.place}: its source has changed since the experiment was checked"
            )
        return found

    def pack(self) -> dict[str, bytes]:
        """Return the files that the class and those it inherits from are written in.

        They are for a process that has not got them. What else the class imports is not among
        them, and must be there.

        Raises:
            QueueError: they are not in the folder of the experiment.
        """
        files = {}
        folder = Path(self.folder)
        for each in self.load().__mro__:
            module = sys.modules.get(each.__module__)
            if not _is_own(each.__module__) or module is None:
                continue
            path = Path(getattr(module, "__file__", None) or "").resolve()
            if not path.is_relative_to(folder) or not path.is_file():
                raise QueueError(
                    f"{self.place}: a worker does not have {each.__module__}, which is not in "
                    f"{folder} and cannot be sent; install it where the workers are"
                )
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
        return files

    def unpack(self, content: Mapping[str, bytes]) -> Located:
        """Return the same in a new folder, made of what `pack` returned in another process."""
        folder = Path(_unpacking().name) / self.source
        for name, data in content.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return dataclasses.replace(self, folder=str(folder.resolve()))


@functools.cache
def _unpacking() -> tempfile.TemporaryDirectory[str]:
    """Return this process's folder for the files of others; it is removed at the end."""
    return tempfile.TemporaryDirectory(prefix="redtail-")


class Resolver:
    """Finds the classes that an experiment names, each once.

    Args:
        file: the experiment's file, if it has one.
        rule: what code may be executed; by default that in its folder.
        refuse: whether other code is refused.
        load: whether the classes are loaded, which executes their code.
    """

    def __init__(
        self,
        file: str | None,
        rule: Rule | None = None,
        *,
        refuse: bool = True,
        load: bool = True,
    ) -> None:
        self.folder = folder_of(file).resolve()
        self.rule = rule or Rule.of(file)
        self.refuse = refuse
        self.load = load
        self.code: dict[str, Code] = {}
        self.found: dict[str, tuple[QueueClass, str]] = {}

    def __call__(self, name: str, params: Mapping[str, Any]) -> str | Refusal | None:
        """Return the hash of a class's source, or what is wrong with it; None if not loaded."""
        try:
            if name not in self.code:
                self.code[name] = self.rule.locate(name, self.folder)
            if self.refuse:
                self.rule.refuse(self.code[name])
            if not self.load:
                return None
            if name not in self.found:
                self.found[name] = find(name, self.folder)
                _require_found_there(self.code[name])
            found, source = self.found[name]
            _check_params(found, params)
        except _Wrong as wrong:
            return wrong.refusal
        return source

    def located(self, places: Mapping[str, str]) -> dict[str, Located]:
        """Return what has been loaded, with the place where each is named."""
        return {
            name: Located(name, str(self.folder), source, places.get(name, name))
            for name, (_, source) in self.found.items()
        }


def _require_found_there(code: Code) -> None:
    """Refuse a module that Python took from another file than the one that is allowed."""
    module = sys.modules.get(split(code.name)[0])
    file = getattr(module, "__file__", None)
    if code.files and file is not None and Path(file).resolve() != code.files[-1]:
        raise _Wrong(
            "class", f"was imported from {file} and not from {code.shown}", "a name of its own"
        )


def name_of(given: type) -> str:
    """Return the name by which an experiment can have a class.

    Raises:
        SpecError: it cannot be found again by a name.
    """
    name = f"{given.__module__}:{given.__qualname__}"
    found: Any = sys.modules.get(given.__module__)
    for part in given.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not given:
        raise SpecError(
            f"class = {given!r} cannot be found again by its name; accepted: a class at the top "
            "of a module",
            key="class",
        )
    passed(name)
    return name


def find(name: str, folder: Path) -> tuple[QueueClass, str]:
    """Return the class of this name and the hash of its source.

    Raises:
        _Wrong: there is none, or it is no queue.
    """
    place, path = split(name)
    with _LOADING:
        if place.endswith(".py"):
            module = _from_file(folder / place)
        else:
            module = _from_module(place, folder)
        found: Any = module
        for part in path.split("."):
            if not hasattr(found, part):
                raise _Wrong("class", f"has no {path!r} in {place}", _classes(module))
            found = getattr(found, part)
        if not isinstance(found, type):
            kind = type(found).__name__
            raise _Wrong("class", f"is a {kind} and not a class", _classes(module))
        for method, arguments in _METHODS.items():
            if not callable(getattr(found, method, None)):
                raise _Wrong(
                    "class",
                    f"has no method {method}",
                    f"a class with {_signatures()}",
                )
            _check_method(found, method, arguments)
        return found, _source(found)


def _signatures() -> str:
    return " and ".join(f"{name}({arguments})" for name, arguments in _METHODS.items())


def _check_method(found: QueueClass, method: str, arguments: str) -> None:
    try:
        inspect.signature(getattr(found, method)).bind(*arguments.split(", "))
    except TypeError:
        raise _Wrong(
            "class",
            f"has a method {method} that cannot be called as {method}({arguments})",
            f"a class with {_signatures()}",
        ) from None
    except ValueError:
        pass  # it has no signature to look at


def _check_params(found: QueueClass, params: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(found)
    except ValueError:
        return
    try:
        signature.bind(None, **params)
    except TypeError as error:
        if not _takes_context(signature):
            raise _Wrong(
                "class",
                f"cannot be made: {error}",
                "a class with __init__(self, context) and arguments for the keys of params",
            ) from None
        names = list(signature.parameters.values())[1:]
        known = ", ".join(str(each.replace(annotation=each.empty)) for each in names)
        raise _Wrong("params", f"do not fit {found.__name__}: {error}", known or "none") from None


def _takes_context(signature: inspect.Signature) -> bool:
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return any(each.kind in kinds for each in signature.parameters.values())


def _classes(module: ModuleType) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    return ", ".join(names) or "a class"


def _from_file(path: Path) -> ModuleType:
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:  # a name with a null byte, too
        raise _Wrong("class", f"names a file that cannot be read: {path}", _ACCEPTED) from error
    # The name is that of the content: a file that has changed is another module.
    digest = _hash(str(path.resolve()).encode() + b"\0" + text)
    name = f"redtail_queue_{digest}"
    module = sys.modules.get(name)
    if module is not None:
        return module
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _Wrong("class", f"names a file that Python cannot load: {path}", _ACCEPTED)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _importable(path.parent):
            # Not by the loader, which compares times of files and may take an older version.
            exec(compile(text, str(path), "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        raise _not_loaded(error, str(path)) from error
    return module


def _from_module(name: str, folder: Path) -> ModuleType:
    try:
        with _importable(folder):
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise _Wrong(
                "class", f"names a module that is not found: {error.name}", _ACCEPTED
            ) from error
        raise _not_loaded(error, name) from error
    except BaseException as error:
        raise _not_loaded(error, name) from error
    return module


def _not_loaded(error: BaseException, what: str) -> BaseException:
    if not isinstance(error, Exception):
        return error  # an interrupt
    text = "".join(traceback.format_exception(_without_ours(error))).rstrip()
    return _Wrong("class", f"cannot be loaded from {what}", f"a module that loads\n{text}")


def _without_ours(error: Exception) -> Exception:
    """Remove from a traceback the lines of redtail and of the import system."""
    frames = error.__traceback__
    while frames is not None and (
        frames.tb_frame.f_code.co_filename == __file__
        or "importlib" in frames.tb_frame.f_code.co_filename
    ):
        frames = frames.tb_next
    return error.with_traceback(frames)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules in a folder be imported, as when a script there runs."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _source(found: QueueClass) -> str:
    """Return the hash of the files in which a class and those it inherits from are written."""
    parts = []
    for each in found.__mro__:
        module = each.__module__
        if not _is_own(module):
            continue
        parts.append(f"{each.__qualname__}\0".encode() + _text(each))
    return _hash(b"\0".join(parts))


def _is_own(module: str) -> bool:
    """Return whether a class in this module is a user's."""
    return module not in ("builtins", "abc", "typing") and module.partition(".")[0] != "redtail"


def _text(found: type) -> bytes:
    module = sys.modules.get(found.__module__)
    file = getattr(module, "__file__", None)
    if file is not None:
        try:
            text = Path(file).read_bytes()
        except OSError as error:
            raise _Wrong(
                "class", f"has a source that cannot be read: {file}", "a class in a file"
            ) from error
        name = found.__module__
        if not name.startswith("redtail_queue_"):
            before = _IMPORTED.setdefault(name, _hash(text))
            if before != _hash(text):
                raise _Wrong(
                    "class",
                    f"is in a file that has changed since Python imported it: {file}",
                    "Python started anew, or the file by its name, as in "
                    f'"{Path(file).name}:{found.__qualname__}"',
                )
        return text
    # A notebook: what was typed is known to `inspect`, by the functions.
    functions = [value for value in vars(found).values() if inspect.isfunction(value)]
    try:
        return "\n".join(map(inspect.getsource, functions)).encode()
    except (OSError, TypeError):
        raise _Wrong(
            "class",
            "has no source that can be read, so its results could not be distinguished from "
            "those of another version",
            "a class in a file",
        ) from None


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def failure(error: Any, queues: Mapping[str, Located]) -> QueueError:
    """Return what the native module says of a queue that failed, as an error of ours.

    Args:
        error: its exception, a `QueueFailed`.
        queues: the run's queues.
    """
    located = queues.get(error.queue)
    place = located.place if located is not None else f"the queue {error.queue!r}"
    method = "it cannot be made" if error.method == "new" else f"{error.method} failed"
    at = "" if error.at is None else f" at {error.at:.6f} s"
    cause = error.__cause__
    if cause is None:
        return QueueError(f"{place}: {method}{at}: {error.problem}")
    text = "".join(traceback.format_exception(cause)).rstrip()
    return QueueError(f"{place}: {method}{at}:\n{text}")
