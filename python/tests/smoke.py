"""The minimum that an installed wheel must do with no other package than NumPy; tools/make-wheel runs it."""

import importlib.metadata
import pathlib
import sys

import cairn
import numpy as np

numbers = np.array([5, 1, 5, 7], np.uint64)
index = cairn.from_columns(numbers)
assert index.find(np.array([5, 8], np.uint64))[0].tolist() == [0, 2]
assert index.scan(with_keys=True).keys.to_numpy().tolist() == [1, 5, 5, 7]
assert cairn.from_columns(["b", "a"]).find_first(["a", "c"]).tolist() == [1, cairn.NO_ROW]
try:
    index.find(numbers.astype(np.float64))
except cairn.KeyTypeError as error:
    assert "expected an array of uint64" in str(error)
else:
    sys.exit("keys of another type were taken")
try:
    cairn.build("/no such database", {"/no such directory": "value:text"})
except FileNotFoundError:
    pass
else:
    sys.exit("a database that is not there was read")

# The wheel contains RocksDB and the other libraries.
with open("/proc/self/maps") as maps:
    libraries = {line.split()[-1] for line in maps if "librocksdb" in line}
folder = pathlib.Path(cairn.__file__).parent.parent
assert libraries, "no RocksDB is loaded"
assert all(pathlib.Path(library).is_relative_to(folder) for library in libraries), libraries
licenses = {file.name for file in importlib.metadata.files("cairn-rocksdb") or [] if file.parent.name == "licenses"}
assert "LICENSE" in licenses and any(name.startswith("librocksdb") for name in licenses), licenses
print("the wheel of cairn", cairn.__version__, "works")
