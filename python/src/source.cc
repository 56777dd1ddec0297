#include "python/src/source.h"

#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "cairn/key_order.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/in/arguments.h"
#include "python/src/in/buffer.h"

namespace cairn::python {

Snapshot::~Snapshot() {
  if (generation_ != ForkGeneration()) new std::shared_ptr<SnapshotSource>(std::move(source_));
}

std::shared_ptr<SnapshotSource> Snapshot::Open() const {
  if (generation_ != ForkGeneration()) {
    throw PythonError("Forked",
                      "the snapshot of " + description_ +
                          " was opened before this process was forked, and its threads are in the "
                          "parent: open it in the child, or start processes by spawn");
  }
  if (source_ == nullptr)
    throw PythonError("Closed", "the snapshot of " + description_ + " is closed");
  return source_;
}

void Snapshot::Close() {
  if (generation_ != ForkGeneration()) return;
  std::shared_ptr<SnapshotSource> source = std::move(source_);
  source_ = nullptr;
  const GilReleased released;
  source.reset();
}

std::string PathOf(nb::handle object, const std::string& argument) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(object.ptr(), &bytes) == 0) {
    const bool type = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    if (!type && PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw nb::python_error();
    PyErr_Clear();
    if (!type) ThrowInvalid(argument + ": expected a path without zero bytes, found one with such");
    throw PythonError(
        "ArgumentTypeError",
        argument + ": expected a path, as str, bytes or os.PathLike, found " + Described(object));
  }
  const nb::bytes path = nb::steal<nb::bytes>(bytes);
  return {path.c_str(), path.size()};
}

nb::object TextWithPath(const std::string& text) {
  PyObject* made =
      PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

std::shared_ptr<SnapshotSource> SourceOf(nb::handle object, const char* argument,
                                         const std::string& column_family) {
  Snapshot* snapshot = nullptr;
  if (nb::try_cast(object, snapshot) && snapshot != nullptr) return snapshot->Open();
  LeaveForksAtOnce();
  absl::StatusOr<std::unique_ptr<SnapshotSource>> source = nullptr;
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    std::vector<std::string> files;
    for (nb::handle file : object) {
      files.push_back(
          PathOf(file, std::string(argument) + "[" + std::to_string(files.size()) + "]"));
    }
    const GilReleased released;
    source = SnapshotSource::FromSstFiles(files);
  } else {
    const std::string directory = PathOf(object, argument);
    const GilReleased released;
    source = SnapshotSource::FromDirectory(directory, column_family);
  }
  return ValueOf(std::move(source));
}

void BindSnapshot(nb::module_& module) {
  module.def(
      "declare_comparator",
      [](TextArg<"name"> name, BoolArg<"reverse"> reverse) {
        Check(
            DeclareComparator(*name, *reverse ? KeyOrder::kReverseBytewise : KeyOrder::kBytewise));
      },
      nb::arg("name").none(), nb::arg("reverse").none() = false,
      nb::sig("def declare_comparator(name: str, reverse: bool = False) -> None"),
      R"doc(Declares the order of all comparators of this name, for the life of the process.

Their keys are in the order of bytes or, if `reverse`, in the reverse order. Needed for comparators that
are neither RocksDB's nor MyRocks'. Errors: AlreadyExists if the name has the other order.)doc");
  nb::class_<Snapshot>(
      module, "Snapshot",
      R"doc(One frozen state of a column family, to build from, catch up to, fetch from and compare with.

If a directory is given instead, it is opened for that one call. Errors: NotFound, FailedPrecondition,
Unimplemented (a comparator of unknown order, user-defined timestamps, unknown merge operators).)doc")
      .def(
          "__init__",
          [](Snapshot* self, nb::handle source, TextArg<"column_family"> column_family) {
            new (self) Snapshot(SourceOf(source, "source", *column_family));
          },
          nb::arg("source").none(), nb::arg("column_family") = "default",
          nb::sig("def __init__(self, source: typing.Any, column_family: str = 'default') -> None"),
          "The directory of a checkpoint, backup or database, or a list of SST files.")
      .def("close", &Snapshot::Close)
      .def(
          "split",
          [](const Snapshot& self, Argument<int, "parts"> given) {
            const int parts = *given;
            if (parts < 1)
              ThrowInvalid("parts: expected at least 1, found " + std::to_string(parts));
            const auto source = self.Open();
            absl::StatusOr<std::vector<PrimaryKeyRange>> ranges = std::vector<PrimaryKeyRange>();
            {
              const GilReleased released;
              ranges = source->Split(parts);
            }
            nb::list made;
            for (const PrimaryKeyRange& range : ValueOf(std::move(ranges))) {
              const nb::bytes upper(range.upper.data(), range.upper.size());
              made.append(nb::make_tuple(nb::bytes(range.lower.data(), range.lower.size()),
                                         range.open ? nb::object(nb::none()) : nb::object(upper)));
            }
            return made;
          },
          nb::arg("parts"),
          nb::sig("def split(self, parts: int) -> list[tuple[bytes, bytes | None]]"),
          "At most `parts` ranges of primary keys, [lower, upper) or without an end, which "
          "together "
          "contain every row once and have similar sizes.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](Snapshot& self, nb::args) { self.Close(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def(
          "__repr__",
          [](const Snapshot& self) {
            return TextWithPath("<cairn.Snapshot of " + self.description() + ">");
          },
          nb::sig("def __repr__(self) -> str"))
      .def_prop_ro(
          "sequence", [](const Snapshot& self) { return self.Open()->sequence(); },
          "RocksDB's sequence number; 0 for SST files.")
      .def_prop_ro("database_id",
                   [](const Snapshot& self) { return std::string(self.Open()->database_id()); })
      .def_prop_ro("column_family",
                   [](const Snapshot& self) { return std::string(self.Open()->column_family()); })
      .def_prop_ro(
          "description", [](const Snapshot& self) { return TextWithPath(self.description()); },
          nb::sig("def description(self) -> str"))
      .def_prop_ro("approximate_rows",
                   [](const Snapshot& self) { return self.Open()->approximate_rows(); });
}

}  // namespace cairn::python
