from collections.abc import Callable
from typing import Any, final

__all__ = [
    "CancelToken",
    "Cancelled",
    "Packet",
    "Plan",
    "QueueContext",
    "QueueFailed",
    "RunResult",
    "SpecError",
    "Trace",
    "advise",
    "code_version",
    "plan",
    "presets",
    "run",
    "run_captured",
    "schema",
    "traffic_examples",
    "version",
]

class SpecError(ValueError):
    file: str | None
    line: int | None
    key: str | None

class Cancelled(Exception): ...

class QueueFailed(Exception):
    queue: str
    method: str
    at: float | None
    problem: str

@final
class Packet:
    @property
    def size(self) -> int: ...
    @property
    def flow(self) -> int: ...
    @property
    def group(self) -> str: ...
    @property
    def protocol(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def sender(self) -> int: ...
    @property
    def receiver(self) -> int: ...
    @property
    def dscp(self) -> int: ...
    @property
    def enqueued(self) -> float: ...
    @property
    def ecn(self) -> str: ...
    def mark(self) -> bool: ...
    def drop(self) -> None: ...

@final
class QueueContext:
    @property
    def rate(self) -> float: ...
    @property
    def limit_packets(self) -> int | None: ...
    @property
    def limit_bytes(self) -> int | None: ...
    @property
    def groups(self) -> list[str]: ...
    @property
    def waiting_packets(self) -> int: ...
    @property
    def waiting_bytes(self) -> int: ...
    def admits(self, packet: Packet) -> bool: ...
    def uniform(self) -> float: ...

@final
class CancelToken:
    def __new__(cls) -> CancelToken: ...
    def cancel(self) -> None: ...

@final
class Trace:
    def __new__(
        cls,
        name: str,
        start_ns: bytes,
        rtt_ns: bytes,
        reverse: bytes,
        first: bytes,
        request: bytes,
        response: bytes,
        service_ns: bytes,
        think_ns: bytes,
    ) -> Trace: ...
    @property
    def name(self) -> str: ...

@final
class Plan:
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def replications(self) -> int: ...
    @property
    def stop(self) -> str | None: ...
    @property
    def seed(self) -> int: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def factors(self) -> list[str]: ...
    @property
    def outline(self) -> list[str]: ...
    @property
    def plugins(self) -> list[tuple[str, str, str]]: ...
    @property
    def cases(self) -> str: ...
    def scenario(
        self, case_index: int, replication: int, users: list[tuple[str, int]] = ...
    ) -> str: ...
    def packets(self, case_index: int) -> float | None: ...
    def loads(self, case_index: int) -> str: ...
    def unconstrained(self, case_index: int, replication: int, group: str, users: int) -> str: ...

@final
class RunResult:
    @property
    def metrics(self) -> dict[str, float]: ...
    @property
    def consecutive_losses(self) -> dict[str, list[int]]: ...
    @property
    def series(self) -> dict[str, dict[str, tuple[str, bytes]]]: ...
    @property
    def names(self) -> dict[str, list[str]]: ...
    @property
    def bottleneck_packets(self) -> int: ...
    @property
    def events(self) -> int: ...

def plan(
    text: str,
    file: str | None = None,
    sets: list[str] = ...,
    format: str = "toml",
    resolve: Callable[[str, dict[str, Any]], str | tuple[str, str, str] | None] | None = None,
    read: Callable[[str], str | tuple[str, str]] | None = None,
    tables: Callable[[str, int, int, bool], Trace | tuple[str, str, str]] | None = None,
) -> Plan: ...
def run(
    scenario_json: str,
    cancel: CancelToken | None = None,
    queues: dict[str, type] | None = None,
    traces: list[Trace] | None = None,
) -> RunResult: ...
def run_captured(
    scenario_json: str,
    points: list[tuple[str, str]],
    ip: int = 4,
    cancel: CancelToken | None = None,
    queues: dict[str, type] | None = None,
    traces: list[Trace] | None = None,
) -> RunResult: ...
def schema() -> str: ...
def presets() -> str: ...
def traffic_examples() -> list[tuple[str, str]]: ...
def advise(
    queue: str,
    rate: str,
    rtt: str,
    rtt_max: str,
    flows: int,
    packet: str,
    delayed_acks: bool,
    udp_rate: str,
    udp_packet: str,
) -> str: ...
def code_version() -> str: ...
def version() -> str: ...
