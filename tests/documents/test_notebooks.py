"""Notebooks run from the first cell to the last, in a kernel of their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.weekly
@pytest.mark.filterwarnings("default")  # of the notebook's machinery
@pytest.mark.parametrize("name", ["campaign.ipynb"])
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / name, tmp_path)
    notebook = nbformat.read(tmp_path / name, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    outputs = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    texts = [output["data"]["text/plain"] for output in outputs if "data" in output]
    assert "queues: 3 cases, 45 runs at most" in texts[0]
    assert "<CampaignResults of 'queues', 'buffers'>" in texts[1]
    assert "short tail drop" in texts[-1]
    assert any("image/png" in output.get("data", {}) for output in outputs)  # the figure
