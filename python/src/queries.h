#pragma once

// The queries of every index of this package: the base class of cairn.Index and cairn.ColumnIndex.

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cairn/batch_index.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

namespace cairn::python {

namespace nb = nanobind;

// A BatchIndex that can be closed while other threads use it: a querying thread keeps it until its
// call ends. Thread-safe.
class Queries {
 public:
  Queries(std::shared_ptr<BatchIndex> index, const KeyCodec& codec, std::string name);
  virtual ~Queries();
  Queries(const Queries&) = delete;
  Queries& operator=(const Queries&) = delete;

  // Returns the index for the duration of a call. Throws Closed, Forked.
  std::shared_ptr<BatchIndex> Open() const;
  // Releases the index, which is destroyed when all running calls have ended. Called with the GIL.
  void Close();
  bool closed() const;

  const KeyCodec& codec() const { return codec_; }
  const std::string& name() const { return name_; }
  // Whether this is a SecondaryIndex, with primary keys, routes and cursors.
  virtual bool is_secondary() const = 0;
  // Whether rows are GlobalRowIds.
  virtual bool in_shards() const { return false; }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<BatchIndex> index_;  // guarded by mutex_
  const KeyCodec codec_;
  const std::string name_;
  const int generation_;  // the number of forks between the first process and this one
};

// The number of forks between the process that loaded the module and this one.
int ForkGeneration();

// Called before RocksDB or oneTBB start threads. Children that are forked later leave exit()
// without running the exit handlers of libraries, which may wait forever for these threads.
// Python's own exit handlers have run by then.
void LeaveForksAtOnce();

// Returns the operation with this method name, "find_first"; InvalidArgument for another name.
Operation OperationOf(const std::string& name);

void BindQueries(nb::module_& module);
void BindExplain(nb::module_& module);

}  // namespace cairn::python
