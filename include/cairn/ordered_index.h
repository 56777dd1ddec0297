#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

namespace cairn {

// A search structure over one sorted run. Immutable: every method is safe from any number of
// threads.
//
// A structure must give LowerBound; all else follows from it and from the run
// (index/query/ordered_index.cc), and a structure overrides what it can answer faster. A method
// returns InvalidArgument where the batch's kind is not the run's, or where an output span's size
// is not the batch's; an empty batch of any kind is answered. RangeBatch::after is not looked at
// here.
class OrderedIndex {
 public:
  explicit OrderedIndex(SortedRun run) : run_(std::move(run)) {}
  virtual ~OrderedIndex() = default;
  OrderedIndex(const OrderedIndex&) = delete;
  OrderedIndex& operator=(const OrderedIndex&) = delete;

  const SortedRun& run() const { return run_; }

  // The factory string that makes this structure, with every parameter that was chosen.
  virtual std::string description() const = 0;
  // Bytes that the structure takes beyond its run.
  virtual uint64_t memory_bytes() const = 0;
  // How many of these the kernel keeps in huge pages, which make random reads faster. They are
  // asked for (madvise) and may be refused: small pages serve as well. Takes milliseconds.
  virtual uint64_t huge_page_bytes() const { return 0; }

  // positions[i] = the number of entries whose key is less than keys[i].
  virtual absl::Status LowerBound(KeyBatch keys, absl::Span<Position> positions) const = 0;
  // positions[i] = the number of entries whose key is at most keys[i].
  virtual absl::Status UpperBound(KeyBatch keys, absl::Span<Position> positions) const;

  // row_ids[i] = the first (lowest) row of keys[i], or kNoRow.
  virtual absl::Status FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const;
  // All rows of each key, ascending.
  virtual absl::Status Find(KeyBatch keys, Matches* matches) const;
  // found[i] = whether any row has keys[i].
  virtual absl::Status Contains(KeyBatch keys, absl::Span<bool> found) const;

  // The positions [begin[i], end[i]) of range i; begin[i] = end[i] where it is empty.
  virtual absl::Status Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                                 absl::Span<Position> end) const;
  // counts[i] = the number of entries in range i; nothing is materialised.
  virtual absl::Status Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const;
  // The rows of each range, in key order or its reverse, at most options.limit each.
  virtual absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options,
                            Matches* matches) const;

 private:
  template <typename Emit>
  absl::Status ForEachFirst(KeyBatch keys, Emit emit) const;

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
