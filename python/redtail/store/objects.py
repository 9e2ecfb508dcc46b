"""Stores in an object store: `--out s3://bucket/runs`, or any other URL that fsspec knows.

An object store has no rename and no locks; an object appears whole when it is put. So an
experiment is worked on in a copy on this machine, an ordinary folder with an ordinary store's
guarantees, and what is finished is put into the object store under the same name:

    a run         its files, then its manifest: without that there is no run
    a segment     one object, named by the hash of its bytes
    the tables    one object each, then `results.json`, which has their checksums

What is there already is fetched when it is asked for, and checked as ever before it is used.
`docs/decisions/0009-object-stores.md` has the reasons.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from redtail.errors import RedtailError, RedtailWarning, SpecError, StoreError
from redtail.extras import extra
from redtail.files import caches, path_of
from redtail.store.format import SEGMENTS, segment_name
from redtail.store.writing import make_inside, make_own, put_in_place

_MANIFEST = "manifest.json"


def is_url(place: str | os.PathLike[str]) -> bool:
    """Return whether a store is an object store's URL rather than a folder.

    >>> is_url("s3://bucket/runs"), is_url("runs"), is_url(Path("runs"))
    (True, False, False)
    """
    return isinstance(place, str) and "://" in place


def copy_of(url: str) -> Path:
    """Return the folder on this machine that a store at a URL is worked on in.

    It is in `$REDTAIL_CACHE`, or else where caches are; it may be removed whenever no campaign is
    at work.
    """
    own = os.environ.get("REDTAIL_CACHE")
    home = caches() if own is None else Path(own)
    return home / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]


def own_copy_of(url: str) -> Path:
    """Return the folder of `copy_of`, which is made for this user alone.

    What is in it counts as what is in the object store, and is put there with this user's rights.

    Raises:
        StoreError: it is another user's, all users can write in it, or it cannot be made.
    """
    folder = copy_of(url)
    make_own(folder, f"is to hold a copy of {url}", "REDTAIL_CACHE=DIR")
    return folder


class Objects:
    """What an object store has below a URL.

    Attributes:
        url: the URL.
        there: the objects, by their names below it, with their sizes.

    Raises:
        StoreError: fsspec or what it needs for this kind of URL is not installed, or it cannot be
            read.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        with extra("objects", f"{url}: an object store", StoreError):
            import fsspec
        try:
            self._files, path = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise StoreError(f"{url}: {error}") from error
        self._path = str(path).rstrip("/")
        self.there: dict[str, int] = {}
        with self._translate_errors("read", FileNotFoundError):  # no such bucket
            self._files.invalidate_cache()
            for path, about in self._files.find(self._path, detail=True).items():
                name = str(path)[len(self._path) + 1 :]
                # Objects may be called anything, and are copied to files.
                if not {"", ".", ".."} & set(name.split("/")):
                    self.there[name] = int(about["size"])

    def read(self, name: str) -> bytes:
        """Return an object."""
        with self._translate_errors("read"):
            data: bytes = self._files.cat_file(f"{self._path}/{name}")
        return data

    def put(self, name: str, data: bytes) -> None:
        """Put an object in its place, whole."""
        path = f"{self._path}/{name}"
        with self._translate_errors("written", FileNotFoundError):
            try:
                self._files.pipe_file(path, data)
            except FileNotFoundError:
                # A file system with folders, which must be there.
                self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
                self._files.pipe_file(path, data)
        self.there[name] = len(data)

    def drop(self, name: str) -> None:
        """Remove an object if it is there."""
        if self.there.pop(name, None) is not None:
            with contextlib.suppress(FileNotFoundError), self._translate_errors("removed"):
                self._files.rm_file(f"{self._path}/{name}")

    @contextlib.contextmanager
    def _translate_errors(self, what: str, *also: type[Exception]) -> Iterator[None]:
        """Turn errors into `StoreError`; a missing object only with `also`."""
        try:
            yield
        except Exception as error:  # each kind of store has errors of its own
            if isinstance(error, FileNotFoundError) and not also:
                raise
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(
                f"{self.url}: cannot be {what}: {reason}. What was finished is in "
                f"{copy_of(self.url).parent} on this machine; the same command goes on from there."
            ) from error


class Remote:
    """An experiment in an object store, and its copy in a folder here.

    Args:
        url: of the experiment.
        folder: the copy.

    Attributes:
        runs: the names of the runs that are there.
        puts: whether to put what only the copy has.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        self.puts = True
        self.objects = Objects(url)
        there = self.objects.there
        self.runs = {name.partition("/")[0] for name in there if name.endswith(f"/{_MANIFEST}")}

    def fetch_run(self, key: str, aside: Path) -> bool:
        """Copy a run into a folder, unchecked; false when it is not there."""
        if key not in self.runs:
            return False
        aside.mkdir()
        try:
            for place in self.objects.there:
                of, _, name = place.partition("/")
                if of == key and "/" not in name:
                    (aside / name).write_bytes(self.objects.read(place))
        except FileNotFoundError:  # another process has removed it
            shutil.rmtree(aside, ignore_errors=True)
            return False
        return True

    def put_run(self, key: str, manifest: dict[str, Any]) -> None:
        """Put a run of the copy into the object store, unless it is there."""
        if not self.puts:
            return
        sizes = {name: about["bytes"] for name, about in manifest["files"].items()}
        there = self.objects.there
        if key in self.runs and all(there.get(f"{key}/{n}") == size for n, size in sizes.items()):
            return
        for name in (*sizes, _MANIFEST):
            self.objects.put(f"{key}/{name}", (self.folder / key / name).read_bytes())
        self.runs.add(key)

    def put_again(self, key: str) -> None:
        """Forget a run that was found damaged, so that it is put again."""
        self.runs.discard(key)

    def fetch_segments(self) -> None:
        """Fetch the segments that are not here, and put those that are not there."""
        here = self.folder / SEGMENTS
        there = [Path(name) for name in self.objects.there if Path(name).parent == Path(SEGMENTS)]
        for name in there:
            if name.suffix != ".parquet" or (self.folder / name).exists():
                continue
            try:
                data = self.objects.read(name.as_posix())
            except FileNotFoundError:  # another process has removed it
                continue
            if segment_name(data) != name.stem:
                warnings.warn(
                    f"{self.objects.url}/{name}: the segment is damaged: it was altered; its runs "
                    "are run again",
                    RedtailWarning,
                    stacklevel=4,
                )
                continue
            make_inside(here)
            put_in_place(self.folder / name, data, self.folder)
        for path in sorted(here.glob("*.parquet")):
            self.put_segment(path)

    def put_segment(self, path: Path) -> None:
        """Put a segment of the copy into the object store, unless it is there or damaged."""
        if not self.puts:
            return
        name = path.relative_to(self.folder).as_posix()
        data = path.read_bytes() if self.objects.there.get(name) != path.stat().st_size else b""
        if data and segment_name(data) == path.stem:
            self.objects.put(name, data)

    def fetch(self, names: Iterable[str]) -> None:
        """Fetch files of the experiment itself, in place of those here."""
        for name in names:
            if name in self.objects.there:
                with contextlib.suppress(FileNotFoundError):  # another process has removed it
                    data = self.objects.read(name)
                    put_in_place(self.folder / name, data, self.folder)


@contextlib.contextmanager
def whole_copy(place: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a folder with all that a store has: itself, or a copy that is removed afterwards.

    Errors name the store, and not the copy, which is gone when they are read.

    Raises:
        StoreError: it cannot be read.
    """
    if not is_url(place):
        yield path_of(place)
        return
    url = str(place)
    objects = Objects(url)
    with TemporaryDirectory(prefix="redtail-") as folder:
        try:
            for name in objects.there:
                path = Path(folder, *name.split("/"))
                path.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileNotFoundError):
                    path.write_bytes(objects.read(name))
        except OSError as error:  # names that cannot be those of files, a full disk
            text = as_named(str(error.filename), Path(folder), url)
            raise StoreError(f"{text}: cannot be copied: {error.strerror or error}") from error
        try:
            yield Path(folder)
        except RedtailError as error:
            text = as_named(str(error), Path(folder), url)
            if text == str(error):
                raise
            kind = SpecError if isinstance(error, SpecError) else StoreError
            raise kind(text) from None


def as_named(text: str, folder: Path, place: str) -> str:
    """Return a text that names the copy of a store as the user has named the store.

    >>> as_named("/tmp/redtail-1/a: damaged", Path("/tmp/redtail-1"), "s3://bucket/runs/")
    's3://bucket/runs/a: damaged'
    """
    return text.replace(str(folder), place.rstrip("/")) if is_url(place) else text
