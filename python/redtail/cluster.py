"""Runs on a dask.distributed cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from redtail.errors import RedtailError
from redtail.extras import extra

P = ParamSpec("P")
T = TypeVar("T")

_CONNECT_S = 10.0

# A cluster may grow while it is used; it is asked for its size no more often than this.
_LOOK_S = 1.0


class ClusterExecutor(Executor):
    """A cluster as an executor that knows how many runs it can make at the same time.

    dask gives the runs of a worker that ends to other workers; each run's result arrives once.

    Args:
        client: a `dask.distributed.Client`.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        # Results are not shared between equal calls: the store does that.
        self._executor = client.get_executor(pure=False)
        self._width = 0
        self._looked = -_LOOK_S

    @property
    def width(self) -> int:
        """Number of threads that all workers have."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_S:
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
            self._width = sum(int(worker["nthreads"]) for worker in workers)
            self._looked = now
        return self._width

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hand a call to a worker."""
        future: Future[T] = self._executor.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Hand out nothing more; the cluster itself stays."""
        self._executor.shutdown(wait=wait)


@contextmanager
def connected(address: str) -> Iterator[ClusterExecutor]:
    """Connect to a dask scheduler.

    Args:
        address: for instance `tcp://host:8786`, or a file that the scheduler wrote with
            `--scheduler-file`.

    Raises:
        RedtailError: dask is not installed, or no scheduler answers.
    """
    with extra("cluster", "running on a dask cluster"):
        from distributed import Client
    where = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    try:
        client = Client(**where, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise RedtailError(
            f"no dask scheduler answers at {address}: {error}; start one with: dask scheduler"
        ) from error
    try:
        yield ClusterExecutor(client)
    finally:
        client.close()
