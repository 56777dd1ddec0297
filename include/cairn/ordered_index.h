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

// A search structure over one sorted run. Immutable: every method is safe from any number of
// threads.
class OrderedIndex {
 public:
  explicit OrderedIndex(SortedRun run) : run_(std::move(run)) {}
  virtual ~OrderedIndex() = default;
  OrderedIndex(const OrderedIndex&) = delete;
  OrderedIndex& operator=(const OrderedIndex&) = delete;

  const SortedRun& run() const { return run_; }

  // The factory string that makes this structure, with every parameter that was chosen.
  virtual std::string description() const = 0;
  // Bytes of memory of its own that the structure takes beyond its run.
  virtual uint64_t memory_bytes() const = 0;
  // How many of these the kernel keeps in huge pages, which make random reads faster. They are
  // asked for (madvise) and may be refused: small pages serve as well. Takes milliseconds.
  virtual uint64_t huge_page_bytes() const { return 0; }
  // Bytes of the index's files that the structure is besides
  // (BuildOptions::prebuild_search_structure): mapped, in the page cache as far as they are read.
  virtual uint64_t mapped_bytes() const { return 0; }

  // Answers a batch, in the caller's order: index.Execute(Batch::Find(keys, &matches)).
  // InvalidArgument where the batch's kind is not the run's, or where an answer's size is not the
  // batch's; an empty batch of any kind is answered. Neither RangeBatch::after is looked at, nor
  // Batch::query_of and explain.
  virtual absl::Status Execute(const Batch& batch) const = 0;

 private:
  SortedRun run_;
};

// Builds the structure that a factory string names over `run`. A factory string is a device, a
// colon, a structure, then options: "cpu:sorted_array", "cpu:fast", "cpu:fast,page=2m"; "cpu:auto"
// and "auto" choose. The strings, their options and their defaults are listed in README.md.
// InvalidArgument for an unknown name or option; Unimplemented where the structure does not take
// the run's kind of keys; ResourceExhausted where memory does not suffice; Unavailable without a
// device.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOrderedIndex(std::string_view factory,
                                                               SortedRun run);

}  // namespace cairn
