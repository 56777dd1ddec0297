#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"

namespace cairn {

// A search structure over one sorted run. Immutable and thread-safe.
class OrderedIndex {
 public:
  explicit OrderedIndex(SortedRun run) : run_(std::move(run)) {}
  virtual ~OrderedIndex() = default;
  OrderedIndex(const OrderedIndex&) = delete;
  OrderedIndex& operator=(const OrderedIndex&) = delete;

  const SortedRun& run() const { return run_; }

  // Returns the factory string of this structure, with all chosen parameters.
  virtual std::string description() const = 0;
  // Returns the bytes of memory of the structure, in addition to its run.
  virtual uint64_t memory_bytes() const = 0;
  // Returns how many of these bytes are in huge pages, which make random reads faster. The
  // structure requests huge pages (madvise), and the kernel may refuse them. Takes milliseconds.
  virtual uint64_t huge_page_bytes() const { return 0; }
  // Returns the bytes of the index files that belong to the structure, in addition to
  // memory_bytes() (BuildOptions::prebuild_search_structure). They are mapped and are in the page
  // cache once read.
  virtual uint64_t mapped_bytes() const { return 0; }

  // Executes a batch, for example index.Execute(Batch::Find(keys, &matches)). Results are in the
  // order of the batch. Ignores RangeBatch::after, Batch::query_of and Batch::explain. Errors:
  // InvalidArgument if the type of the keys is not that of the run or if the size of an output is
  // not that of the batch. An empty batch of any type succeeds.
  virtual absl::Status Execute(const Batch& batch) const = 0;

 private:
  SortedRun run_;
};

// Builds the structure named by a factory string over `run`. A factory string is a device, a colon,
// a structure and options: "cpu:sorted_array", "cpu:fast", "cpu:fast,page=2m". "cpu:auto" and
// "auto" choose a structure. docs/tuning.md lists the strings and their options. Errors:
// InvalidArgument for an unknown name or option; Unimplemented if the structure does not support
// the type of the keys; ResourceExhausted if memory runs out; Unavailable if there is no such
// device.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOrderedIndex(std::string_view factory,
                                                               SortedRun run);

}  // namespace cairn
