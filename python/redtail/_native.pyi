from typing import final

__all__ = [
    "CancelToken",
    "Cancelled",
    "Plan",
    "RunResult",
    "SpecError",
    "advise",
    "code_version",
    "plan",
    "presets",
    "run",
    "run_captured",
    "schema",
    "version",
]

class SpecError(ValueError):
    file: str | None
    line: int | None
    key: str | None

class Cancelled(Exception): ...

@final
class CancelToken:
    def __new__(cls) -> CancelToken: ...
    def cancel(self) -> None: ...

@final
class Plan:
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def replications(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def factors(self) -> list[str]: ...
    @property
    def outline(self) -> list[str]: ...
    @property
    def cases(self) -> str: ...
    def scenario(self, case_index: int, replication: int) -> str: ...

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
) -> Plan: ...
def run(scenario_json: str, cancel: CancelToken | None = None) -> RunResult: ...
def run_captured(
    scenario_json: str,
    points: list[tuple[str, str]],
    ip: int = 4,
    cancel: CancelToken | None = None,
) -> RunResult: ...
def schema() -> str: ...
def presets() -> str: ...
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
