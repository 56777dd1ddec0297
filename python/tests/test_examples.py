"""The unchanged examples, over a small database of `cairn demo`."""

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import cairn
import numpy as np
import pytest
from conftest import load

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
NEEDS = {"checkpoint_to_answers": ["pyarrow"], "dataframes": ["pyarrow", "pandas", "polars", "duckdb"], "response": ["matplotlib"], "cluster": ["ray"]}


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    tool = os.environ.get("CAIRN") or shutil.which("cairn")
    if tool is None:
        pytest.skip("needs the command line `cairn`, for `cairn demo`; its path is CAIRN")
    directory = tmp_path_factory.mktemp("demo") / "db"
    subprocess.run([tool, "demo", str(directory), "--rows=20000"], check=True, capture_output=True)
    return directory


def test_each_example_is_tried() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_example(name: str, demo: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for package in NEEDS[name]:
        pytest.importorskip(package)
    environment = os.environ | {"CAIRN_INDEXES": str(tmp_path), "MPLBACKEND": "Agg", "CAIRN_SECONDS": "0.3"}
    done = subprocess.run(
        [sys.executable, "-P", str(EXAMPLES / f"{name}.py"), str(demo)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    if name == "response":
        assert (tmp_path / "response.png").read_bytes().startswith(b"\x89PNG")


def test_the_programs_of_the_readmes(tmp_path: pathlib.Path) -> None:
    """Runs the example unchanged, except for the folder /data."""
    rows = {b"%d" % i: b'{"age": %d, "city": "%s"}' % (20 + i, [b"Lisbon", b"Oslo"][i % 2]) for i in range(30)}
    load(tmp_path / "db", rows)
    for copy in ("checkpoint", "cp"):
        shutil.copytree(tmp_path / "db", tmp_path / copy)
    for readme in (EXAMPLES.parent / "README.md", EXAMPLES.parent.parent / "README.md"):
        for index in ("age", "city"):
            shutil.rmtree(tmp_path / index, ignore_errors=True)
        program = readme.read_text().split("```python\n")[1].split("```")[0]
        names: dict[str, Any] = {}
        exec(compile(program.replace("/data", str(tmp_path)), readme, "exec"), names)
        assert names["hits"]["primary_key"].to_pylist()[:2] == [b"0", b"10"]


def test_the_program_of_the_tutorial(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the program unchanged, in the folder of its database, and checks its output."""
    pytest.importorskip("pyarrow")
    people = {b"ana": ("Lisbon", 34), b"bo": ("Oslo", 17), b"eva": ("Lisbon", 41), b"joe": ("Quito", 28), b"kim": ("Oslo", 65)}
    load(tmp_path / "people.db", {name: b'{"city": "%s", "age": %d}' % (city.encode(), age) for name, (city, age) in people.items()})
    monkeypatch.chdir(tmp_path)
    tutorial = EXAMPLES.parent.parent / "docs" / "tutorial.md"
    program, after = tutorial.read_text().split("```python\n")[1].split("```", 1)
    exec(compile(program, tutorial, "exec"), {})
    assert capsys.readouterr().out == after.split("```\n")[1]


def test_plot_measures_every_route(demo: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    import cairn.plot

    cairn.build(demo, {tmp_path / "text": "value.field('|',4):text,cf=customer", tmp_path / "n": "value.field('|',3):u8,cf=customer"})
    for name in ("text", "n"):
        index = cairn.open(tmp_path / name)
        times = cairn.plot.measure(index, "contains", batches=[1, 64, 256], seconds=0.2)
        routes = [route for route, _, _ in index.explain("contains", ["a"] if name == "text" else [1]).candidates]
        assert set(times) == {"router", *routes}
        assert all([size for size, _ in found] == [1, 64, 256] for found in times.values())
        assert all(taken > 0 for found in times.values() for _, taken in found)
    figure = cairn.plot.response(index, keys=np.array([1, 2], np.uint8), batches=[1, 8], seconds=0.1)
    assert len(figure.axes) == 2 and figure.axes[0].get_lines()
    with pytest.raises(cairn.InvalidArgument, match="scan"):
        cairn.plot.measure(index, "scan")
