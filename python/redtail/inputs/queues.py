"""Classes of users, queues and congestion controllers: how to find one that an experiment names.

A class is named `"my_queue.py:MyQueue"`, a file beside the experiment's, or
`"package.module:MyQueue"`, which is imported. The hash of its source is part of the scenario, so
that a result is never taken for one of a class that has changed. The modules that it imports are
part of the hash, and so are the versions of the installed packages among them. Where the code lies,
what it imports, and whether it may be executed, is found out in `code` before. The interface of
queues is here, that of controllers in `controllers`.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import inspect
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from redtail.errors import ControllerError, PluginError, QueueError, SpecError
from redtail.files import OUTSIDE, is_within
from redtail.inputs import compiled, modules
from redtail.inputs.code import ACCEPTED as _ACCEPTED
from redtail.inputs.code import (
    Code,
    Refusal,
    Rule,
    closure_of,
    folder_of,
    passed,
    split,
    was_passed,
)
from redtail.inputs.code import Wrong as _Wrong
from redtail.inputs.controllers import METHODS as _OF_CONTROLLERS
from redtail.inputs.controllers import OPTIONAL as _OPTIONAL
from redtail.inputs.imports import INSTALLED, Closure, installed_package

if TYPE_CHECKING:
    from types import ModuleType

    from redtail._native import Compiled, Packet


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


PluginClass: TypeAlias = "type[Any]"

# What a class needs for each role, and what it may have.
_METHODS: dict[str, Mapping[str, str]] = {
    "queue": {"enqueue": "self, packet, now", "dequeue": "self, now"},
    "controller": _OF_CONTROLLERS,
}
_MAY_HAVE: dict[str, Mapping[str, str]] = {"queue": {}, "controller": _OPTIONAL}

_ERRORS: dict[str, type[PluginError]] = {"queue": QueueError, "controller": ControllerError}

# Modules are loaded one at a time: threads that make plans share `sys.path` and `sys.modules`.
_LOADING = threading.RLock()
# The hash of the file that each module was imported from, when it was first looked at. Only of
# modules that Python itself imports; the others are loaded from what was read (`modules`).
_IMPORTED: dict[str, str] = {}


@dataclass(frozen=True)
class Located:
    """A class by its name, so that another process can find it too.

    Attributes:
        name: as in the experiment.
        folder: what files and modules are looked for in.
        source: hash of its source.
        place: where the experiment names it, for messages.
        role: what it is: "queue" or "controller".
    """

    name: str
    folder: str
    source: str
    place: str
    role: str = "queue"

    def _error(self, problem: str) -> PluginError:
        return _ERRORS[self.role](f"{self.place}: {problem}")

    def load(self) -> PluginClass | Compiled:
        """Return the class or module.

        Raises:
            PluginError: it is not what it was when the experiment was checked.
        """
        try:
            found, source = find(self.name, Path(self.folder), self.role)
        except _Wrong as wrong:
            _, problem, accepted = wrong.refusal
            raise self._error(f"{problem}; accepted: {accepted}") from wrong
        if source != self.source:
            raise self._error("its source has changed since the experiment was checked")
        return found

    def pack(self) -> dict[str, bytes]:
        """Return the files that the class needs: its own, and those of modules that it imports.

        They are for a process that has not got them. Installed packages are not among them, and
        must be there.

        Raises:
            PluginError: they are not in the folder of the experiment.
        """
        self.load()
        files = {}
        folder = Path(self.folder)
        if compiled.is_compiled(self.name):
            return self._pack_compiled(folder)
        closure = _closure(self.name, folder)
        if closure is None:
            raise self._error(
                "a worker does not have this class, which is in no file and cannot be sent; write "
                "it into a file"
            )
        for each in closure.modules:
            path = each.found.file
            if path is None or installed_package(each):
                continue
            if not path.is_relative_to(folder):
                raise self._error(
                    f"a worker does not have {each.name}, which is not in {folder} and cannot be "
                    "sent; install it where the workers are"
                )
            files[path.relative_to(folder).as_posix()] = each.text
        return files

    def _pack_compiled(self, folder: Path) -> dict[str, bytes]:
        path, code = compiled.read(self.name, folder)
        if not path.is_relative_to(folder):
            raise self._error(
                f"a worker does not have {path}, which is not in {folder} and cannot be sent; put "
                "it there"
            )
        return {path.relative_to(folder).as_posix(): code}

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
        confined: the folder that files of classes must lie in; by default they may lie anywhere.
    """

    def __init__(
        self,
        file: str | None,
        rule: Rule | None = None,
        *,
        refuse: bool = True,
        load: bool = True,
        confined: Path | None = None,
    ) -> None:
        self.confined = confined
        self.folder = folder_of(file).resolve()
        self.rule = rule or Rule.of(file)
        self.refuse = refuse
        self.load = load
        self.code: dict[str, Code] = {}
        self.found: dict[str, tuple[PluginClass | Compiled, str]] = {}
        self.roles: dict[str, str] = {}

    def __call__(
        self, name: str, params: Mapping[str, Any], role: str = "queue"
    ) -> str | Refusal | None:
        """Return the hash of a class's source, or what is wrong with it.

        None if the class has to be loaded for it, and is not.

        Args:
            name: as in the experiment.
            params: the parameters that the class is made with.
            role: what it is to be: "queue" or "controller".
        """
        if self.roles.setdefault(name, role) != role:
            return "class", f"is named as a {self.roles[name]} too", "a class for one of the two"
        try:
            if name not in self.code:
                place = (compiled.split(name) or split(name))[0]
                if place.endswith((".py", compiled.SUFFIX)) and not is_within(
                    self.folder / place, self.confined
                ):
                    return ("class", *OUTSIDE)
                self.code[name] = self.rule.locate(name, self.folder)
            if self.refuse:
                self.rule.refuse(self.code[name])
            # A module is compiled when it is checked, which executes nothing.
            if not self.load and not self.code[name].sandboxed:
                return self.code[name].source or None
            if name not in self.found:
                self.found[name] = find(name, self.folder, role)
            found, source = self.found[name]
            if self.load:
                _check_params(found, params)
        except _Wrong as wrong:
            return wrong.refusal
        return source

    def located(self, places: Mapping[str, str]) -> dict[str, Located]:
        """Return what has been loaded, with the place where each is named."""
        if not self.load:
            return {}
        return {
            name: Located(name, str(self.folder), source, places.get(name, name), self.roles[name])
            for name, (_, source) in self.found.items()
        }


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


def find(name: str, folder: Path, role: str = "queue") -> tuple[PluginClass | Compiled, str]:
    """Return the class or module of this name and the hash of its source.

    Raises:
        _Wrong: there is none, or it lacks the methods of the role.
    """
    if compiled.is_compiled(name):
        try:
            return compiled.load(name, folder, role)
        except compiled.Refused as refused:
            raise _Wrong("class", refused.problem, refused.accepted) from None
    place, path = split(name)
    closure = _closure(name, folder)
    with _LOADING:
        module = _from_module(place) if closure is None else _loaded(closure, place)
        found: Any = module
        for part in path.split("."):
            if not hasattr(found, part):
                raise _Wrong("class", f"has no {path!r} in {place}", _classes(module))
            found = getattr(found, part)
        if not isinstance(found, type):
            kind = type(found).__name__
            raise _Wrong("class", f"is a {kind} and not a class", _classes(module))
        for method, arguments in _METHODS[role].items():
            if not callable(getattr(found, method, None)):
                raise _Wrong(
                    "class",
                    f"has no method {method}",
                    f"a class with {_signatures(role)}",
                )
            _check_method(found, method, arguments, f"a class with {_signatures(role)}")
        for method, arguments in _MAY_HAVE[role].items():
            if callable(getattr(found, method, None)):
                _check_method(found, method, arguments, f"{method}({arguments})")
        return found, _typed(found) if closure is None else closure.source


def _closure(name: str, folder: Path) -> Closure | None:
    """Read the code of a class; None if it was typed into a notebook or a shell."""
    module = sys.modules.get(split(name)[0])
    if module is not None and was_passed(name) and getattr(module, "__file__", None) is None:
        return None
    return closure_of(name, folder)


def _signatures(role: str) -> str:
    return " and ".join(f"{name}({arguments})" for name, arguments in _METHODS[role].items())


def _check_method(found: PluginClass, method: str, arguments: str, accepted: str) -> None:
    try:
        inspect.signature(getattr(found, method)).bind(*arguments.split(", "))
    except TypeError:
        raise _Wrong(
            "class",
            f"has a method {method} that cannot be called as {method}({arguments})",
            accepted,
        ) from None
    except ValueError:
        pass  # it has no signature to look at


def _check_params(found: PluginClass | Compiled, params: Mapping[str, Any]) -> None:
    if not isinstance(found, type):
        refusal = compiled.refused_params(found, params)
        if refusal is not None:
            raise _Wrong(*refusal)
        return
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


def _loaded(closure: Closure, place: str) -> ModuleType:
    """Load the module of a class, apart from others or as Python imports it."""
    if not closure.main.own:
        module = _from_module(place)
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).resolve() != closure.main.found.file:
            raise _Wrong(
                "class",
                f"was imported from {file} and not from {closure.main.found.file}",
                "a name of its own",
            )
        for each in closure.modules:
            if each.name in sys.modules and each.found.file is not None:
                digest = hashlib.sha256(each.text).hexdigest()
                if _IMPORTED.setdefault(each.name, digest) != digest:
                    raise _Wrong(
                        "class",
                        "needs a file that has changed since Python imported it: "
                        f"{each.found.file}",
                        "Python started anew, or code in the experiment's folder",
                    )
        return module
    before = set(sys.modules)
    try:
        module = modules.load(closure)
    except BaseException as error:
        raise _not_loaded(error, str(closure.main.found.file)) from error
    for name in set(sys.modules) - before:
        if not name.startswith(modules.PREFIX):
            _require_not_of(closure, name)
    return module


def _require_not_of(closure: Closure, name: str) -> None:
    """Refuse what code has imported from its own folders by other means than `import`."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return
    path = Path(file).resolve()
    if any(path.is_relative_to(folder) for folder in closure.search) and INSTALLED.isdisjoint(
        path.parts
    ):
        del sys.modules[name]
        raise _Wrong(
            "class",
            f"has loaded {path} by other means than the statement import, so that no result would "
            "be known to depend on it",
            f"import {path.stem}",
        )


def _from_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise _Wrong(
                "class", f"names a module that is not found: {error.name}", _ACCEPTED
            ) from error
        raise _not_loaded(error, name) from error
    except BaseException as error:
        raise _not_loaded(error, name) from error


def _not_loaded(error: BaseException, what: str) -> BaseException:
    if not isinstance(error, Exception):
        return error  # an interrupt
    text = "".join(traceback.format_exception(_without_ours(error))).rstrip()
    return _Wrong("class", f"cannot be loaded from {what}", f"a module that loads\n{text}")


def _without_ours(error: Exception) -> Exception:
    """Remove from a traceback the lines of redtail and of the import system."""
    frames = error.__traceback__
    ours = (__file__, modules.__file__)
    while frames is not None and (
        frames.tb_frame.f_code.co_filename in ours
        or "importlib" in frames.tb_frame.f_code.co_filename
    ):
        frames = frames.tb_next
    return error.with_traceback(frames)


def _typed(found: type) -> str:
    """Return the hash of a class that is in no file: of its methods and of those it inherits.

    Raises:
        _Wrong: they cannot be read.
    """
    texts = []
    for each in found.__mro__:
        if each.__module__ != found.__module__:
            continue
        # What was typed is known to `inspect`, by the functions.
        functions = [value for value in vars(each).values() if inspect.isfunction(value)]
        try:
            texts += [each.__qualname__, *map(inspect.getsource, functions)]
        except (OSError, TypeError):
            raise _Wrong(
                "class",
                "has no source that can be read, so its results could not be distinguished from "
                "those of another version",
                "a class in a file",
            ) from None
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def failure(error: Any, queues: Mapping[str, Located]) -> PluginError:
    """Return what the native module says of a class that failed, as an error of ours.

    Args:
        error: its exception, a `PluginFailed`.
        queues: the run's classes.
    """
    role = getattr(error, "role", "queue")
    located = queues.get(error.class_name)
    place = located.place if located is not None else f"the {role} {error.class_name!r}"
    kind = _ERRORS[role]
    method = "it cannot be made" if error.method == "new" else f"{error.method} failed"
    at = "" if error.at is None else f" at {error.at:.6f} s"
    cause = error.__cause__
    if cause is None:
        return kind(f"{place}: {method}{at}: {error.problem}")
    text = "".join(traceback.format_exception(cause)).rstrip()
    return kind(f"{place}: {method}{at}:\n{text}")
