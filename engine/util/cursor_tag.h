#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/query.h"

namespace cairn {

// A checksum of a query. Each cursor begins with the tag of the query that returned it, so that no
// other query continues from it: results that are missing without an error would be the
// consequence. A tag does not depend on versions of an index, on limits, or on columns.
class CursorTag {
 public:
  static constexpr size_t kBytes = 8;

  explicit CursorTag(uint64_t checksum) : checksum_(checksum) {}
  // The tag of a query that this text identifies.
  static CursorTag OfText(std::string_view question);
  // The tags of a scan and of the groups of range i of a checked batch. `index` is OfIndex of the
  // index's spec. `sources` is SourcesChecksum of an index sharded by source; otherwise 0.
  static CursorTag OfScan(uint64_t index, const RangeBatch& ranges, size_t i, Order order,
                          uint64_t sources = 0);
  static CursorTag OfGroups(uint64_t index, const RangeBatch& ranges, size_t i,
                            size_t leading_parts);
  // A checksum of all settings of an index.
  static uint64_t OfIndex(const IndexSpec& spec);

  uint64_t checksum() const { return checksum_; }
  // Appends the tag to a text.
  void AppendTo(std::string* text) const;
  // Returns the cursor with the tag.
  std::string Add(std::string_view cursor) const;
  // Returns the cursor without the tag; it points into `tagged`. InvalidArgument, with a message
  // that begins with `name`: it is not a cursor, or it belongs to another query.
  absl::StatusOr<std::string_view> Remove(std::string_view tagged, std::string_view name) const;
  // The same for the cursor of range i, with the name "after".
  absl::StatusOr<std::string_view> RemoveFrom(const RangeBatch& ranges, size_t i) const;

 private:
  bool Matches(std::string_view tagged) const;

  uint64_t checksum_;
};

}  // namespace cairn
