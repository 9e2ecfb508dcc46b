"""`make check` runs what a change is likely to break."""

from __future__ import annotations

import pytest

from check import commands, crates_to_test, python_tests


def test_a_crate_is_tested_with_those_that_depend_on_it() -> None:
    queue = crates_to_test(["crates/qdisc/src/queues/red.rs", "README.md"])
    assert {"redtail-qdisc", "redtail-sim", "redtail-py"} <= set(queue)
    assert "redtail-recordings" not in queue
    assert set(crates_to_test(["crates/core/src/lib.rs"])) > set(queue)
    core = set(crates_to_test(["crates/core/src/lib.rs"]))
    assert set(crates_to_test(["Cargo.lock"])) >= core
    assert crates_to_test(["docs/index.md"]) == []


def test_a_module_is_tested_by_what_imports_it() -> None:
    chosen = python_tests(["python/redtail/store/segments.py", "tests/analysis/test_stats.py"])
    assert {"tests/store/test_segments.py", "tests/analysis/test_stats.py"} <= set(chosen)
    assert "tests/documents/test_docs.py" not in chosen


def test_the_own_tests_of_a_queue_come_first_and_need_no_native_module() -> None:
    files = ["crates/qdisc/src/queues/fq_codel.rs", "crates/qdisc/src/laws/red.rs"]
    found = [" ".join(command) for command in commands(files)]
    assert found[0] == "make --silent test-queue QUEUE=fq-codel"
    assert found[1].startswith("cargo fmt")
    native = [command.startswith(("make check-", "make --silent dev")) for command in found]
    assert native.index(True) > [c.startswith("cargo test") for c in found].index(True)
    assert "test_engine.py" in found[-1]
    assert not any("test-queue" in " ".join(command) for command in commands(files[1:]))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("crates/qdisc/src/fq.rs", ["cargo fmt", "cargo clippy", "cargo test", "make check-fresh"]),
        ("python/redtail/analysis/stats.py", ["make check-types", "make check-python"]),
        ("lab/src/knobs.ts", ["make --silent check-lab"]),
        ("docs/index.md", []),
    ],
)
def test_what_is_run_follows_the_kind_of_file(file: str, expected: list[str]) -> None:
    found = [" ".join(command) for command in commands([file])]
    for beginning in expected:
        assert any(command.startswith(beginning) for command in found), found
    assert ("-k docs/index.md" in found[-1]) == (file == "docs/index.md")
