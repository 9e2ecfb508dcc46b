"""Archives and folders of results as somebody who forges them would make them.

Every checksum is right: of the files of a run in its manifest, of the tables in `results.json`, of
all entries in `pack.json`, and the seals of the first two.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from redtail.store import format
from redtail.store.format import RUN_NAME, run_key
from redtail.store.sealing import checksums, sealed


def entries_of(archive: Path) -> dict[str, bytes]:
    """Return the content of each entry."""
    with zipfile.ZipFile(archive) as file:
        return {name: file.read(name) for name in file.namelist()}


def folder_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder of results, by their names in an archive."""
    return {
        f"results/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def write_archive(entries: Mapping[str, bytes], archive: Path) -> Path:
    """Write entries as an archive."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in sorted(entries.items()):
            file.writestr(name, data)
    return archive


def write_folder(entries: Mapping[str, bytes], folder: Path) -> Path:
    """Write the results of an archive into a folder."""
    for name, data in entries.items():
        if name.startswith("results/"):
            path = folder / name.removeprefix("results/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder


def sealed_again(entries: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return entries with all checksums as they would be if redtail had written them."""
    found = dict(entries)
    for name in [each for each in found if each.endswith("/manifest.json")]:
        manifest = json.loads(found[name])
        folder = name.rpartition("/")[0]
        own = [each for each in found if each.startswith(f"{folder}/") and each != name]
        manifest["files"] = {
            each: checksums(found[f"{folder}/{each}"])
            for each in {**manifest["files"], **dict.fromkeys(n.rpartition("/")[2] for n in own)}
        }
        manifest.pop("checksum", None)
        found[name] = sealed(manifest)
    index = json.loads(found["results/results.json"])
    index["files"] = {each: checksums(found[f"results/{each}"]) for each in index["files"]}
    text = index["provenance"].get("experiment")
    if text is not None:
        text["sha256"] = checksums(found[f"results/{text['file']}"])["sha256"]
    index.pop("checksum", None)
    found["results/results.json"] = sealed(index, ensure_ascii=False)
    if "pack.json" in found:
        about = json.loads(found["pack.json"])
        about["files"] = {
            name: checksums(data) for name, data in sorted(found.items()) if name != "pack.json"
        }
        found["pack.json"] = json.dumps(about).encode()
    return found


def changed(
    entries: Mapping[str, bytes], name: str, change: Callable[[Any], object]
) -> dict[str, bytes]:
    """Return entries of which a JSON file is changed."""
    value = json.loads(entries[name])
    change(value)
    return {**entries, name: json.dumps(value).encode()}


def scaled(data: bytes, factor: float = 0.1, part: str = "delay") -> bytes:
    """Return a table with the floating-point columns of these names times a factor."""
    table = pq.read_table(io.BytesIO(data))
    columns = [
        pc.multiply(table[name], factor)
        if pa.types.is_floating(table.schema.field(name).type) and part in name
        else table[name]
        for name in table.column_names
    ]
    if "metric" in table.column_names:
        hit = pc.match_substring(table["metric"], part)
        at = table.column_names.index("mean")
        columns[at] = pc.if_else(hit, pc.multiply(table["mean"], factor), table["mean"])
    return encoded(pa.table(columns, schema=table.schema))


def encoded(table: pa.Table, **options: Any) -> bytes:
    """Return a table as Parquet."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def of_other_code(entries: Mapping[str, bytes], code: str) -> dict[str, bytes]:
    """Return an archive that claims to be made by another version of the code, with its keys."""
    found = dict(entries)
    keys = {}
    for name in [each for each in found if each.endswith("/manifest.json")]:
        manifest = json.loads(found[name])
        folder = name.rpartition("/")[0]
        scenario = found[f"{folder}/scenario.json"].decode()
        key = run_key(scenario, code, manifest["backend"])
        keys[manifest["run"]] = key
        manifest |= {"run": key, "code_version": code}
        found[name] = json.dumps(manifest).encode()
    for old, new in keys.items():
        for name in [each for each in found if each.startswith(f"results/{old}/")]:
            found[name.replace(old, new, 1)] = found.pop(name)

    def other(index: dict[str, Any]) -> None:
        index["made_by"] = code
        for case in index["cases"]:
            case["runs"] = {number: keys[key] for number, key in case["runs"].items()}

    found = changed(found, "results/results.json", other)
    if "pack.json" in found:
        found = changed(found, "pack.json", lambda about: about.update(code_version=code))
    return sealed_again(found)


def of_segments(
    entries: Mapping[str, bytes], change: Callable[[pa.Table], pa.Table]
) -> dict[str, bytes]:
    """Return an archive with other segments, under the names that their bytes have."""
    found = dict(entries)
    for name in [each for each in found if each.startswith("results/segments/")]:
        data = encoded(change(pq.read_table(io.BytesIO(found.pop(name)))), compression="zstd")
        found[f"results/segments/{format.segment_name(data)}.parquet"] = data
    return sealed_again(found)


def runs_of(entries: Mapping[str, bytes]) -> list[str]:
    """Return the names of the runs that have folders."""
    return sorted(
        {part for name in entries for part in name.split("/") if RUN_NAME.fullmatch(part)}
    )
