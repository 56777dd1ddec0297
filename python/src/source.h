#pragma once

// The class cairn.Snapshot: one frozen state of a column family, to build from and compare with.

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "cairn/snapshot_source.h"
#include "python/src/queries.h"

namespace cairn::python {

namespace nb = nanobind;

// A source that can be closed while calls use it. Thread-safe under the GIL. After a fork it
// belongs to the parent, as do its temporary files.
class Snapshot {
 public:
  explicit Snapshot(std::shared_ptr<SnapshotSource> source)
      : source_(std::move(source)),
        description_(source_->description()),
        generation_(ForkGeneration()) {}
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Throws Closed, Forked.
  std::shared_ptr<SnapshotSource> Open() const;
  void Close();
  const std::string& description() const { return description_; }

 private:
  std::shared_ptr<SnapshotSource> source_;
  std::string description_;
  const int generation_;
};

// The source that a caller passed: a Snapshot, the directory of a database, or a list of SST files.
// Throws NotFound and the other errors of SnapshotSource. `argument` begins the message of an
// ArgumentTypeError.
std::shared_ptr<SnapshotSource> SourceOf(nb::handle object, const char* argument,
                                         const std::string& column_family);

// The path in a str, bytes or os.PathLike. Throws ArgumentTypeError; InvalidArgument if it has a
// zero byte.
std::string PathOf(nb::handle object, const std::string& argument);
// Converts text that contains a path to a str with the file system's encoding, like os.fsdecode().
nb::object TextWithPath(const std::string& text);

void BindSnapshot(nb::module_& module);

}  // namespace cairn::python
