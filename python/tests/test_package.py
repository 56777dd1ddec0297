"""The package itself: names, versions, types, documentation."""

import importlib.metadata
import inspect
import pathlib
import subprocess
import sys
import textwrap

import cairn
import pytest


def test_version() -> None:
    assert importlib.metadata.version("cairn-rocksdb") == cairn.__version__


def test_everything_public_is_documented() -> None:
    for name in cairn.__all__:
        value = getattr(cairn, name)
        if name in ("NO_ROW", "NO_GLOBAL_ROW", "__version__"):
            continue
        assert inspect.getdoc(value), name
    for method in ("find", "find_first", "contains", "count", "scan", "primary_keys", "fetch", "catch_up", "compact", "verify", "stats", "explain", "close"):
        assert inspect.getdoc(getattr(cairn.Index, method)), method
    assert {cls.__name__ for cls in vars(cairn.errors).values() if isinstance(cls, type)} <= set(cairn.__all__)


def test_types(tmp_path: pathlib.Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    program = tmp_path / "typed.py"
    program.write_text(
        textwrap.dedent("""
        import cairn
        import numpy as np
        import numpy.typing as npt

        reports: dict[str, cairn.BuildReport] = cairn.build("db", {"out": "value:text"}, progress=True)
        with cairn.open("out", device="auto") as index:
            rows: npt.NDArray[np.uint32] = index.find_first(np.array([1], np.uint64))
            found: cairn.FindResult = index.find(["a"], primary_keys=True)
            keys: cairn.Column | None = found.primary_keys
            counts: npt.NDArray[np.uint64] = index.count("a", "b", bounds="[]")
            page: cairn.FindResult = index.scan(prefix=["a"], limit=3, after=found.cursors)
            index.catch_up("db").sequence
        columns: cairn.ColumnIndex = cairn.from_columns([1, 2])
        try:
            columns.find("a")
        except cairn.KeyTypeError as error:
            print(error)
    """)
    )
    output, errors, status = mypy.run(["--strict", "--cache-dir", str(tmp_path), str(program)])
    assert status == 0, output + errors
    program.write_text("import cairn\ncairn.open('x').find_first(1).no_such_thing\ncairn.open(7)\n")
    output, _, status = mypy.run(["--strict", "--cache-dir", str(tmp_path), str(program)])
    assert status == 1 and "no_such_thing" in output and "Argument 1" in output


def test_it_needs_numpy_alone() -> None:
    program = "import sys, cairn; print(sorted(m for m in sys.modules if m in ('pyarrow', 'pandas', 'polars', 'tqdm', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True).stdout == "[]\n"
