#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/types.h"
#include "engine/delta/row_updates.h"
#include "engine/delta/update_rows.h"
#include "engine/delta_files/delta_file.h"

namespace cairn {

// Merges a sequence of updates into one: each row once, in its last state, in primary-key order.
// Keeps a slice of each file in memory. Only one thread at a time. Methods that allocate throw
// std::bad_alloc.
class UpdateMerge {
 public:
  explicit UpdateMerge(PhysicalType kind) : kind_(kind) {}

  // Adds the next updates, with keys of `kind`: a file, which must outlive this object, or rows in
  // primary-key order. Add all updates before the first Next.
  void Add(const DeltaFile& file);
  void Add(RowUpdates updates);

  // Sets `updates` to the next `rows` rows, or to all that are left if there are fewer. Returns
  // false if there are none. The first slice has the deleted ranges of all updates, and may have no
  // rows.
  bool Next(size_t rows, RowUpdates* updates);

 private:
  struct Source {
    size_t age;                           // its index; a higher one is later
    std::unique_ptr<DeltaReader> reader;  // null: everything is in the slice
    RowUpdates slice;
    size_t row = 0;                // the next row of the slice
    std::string_view primary_key;  // of that row
    RowUpdates deleted;            // the source's ranges
    std::vector<KeyRange> ranges;  // the same, ascending and disjoint
    size_t range = 0;              // the first one that ends after the last row read
  };

  struct IsBehind {
    bool operator()(const Source* a, const Source* b) const {
      const int order = a->primary_key.compare(b->primary_key);
      return order != 0 ? order > 0 : a->age < b->age;
    }
  };

  void Begin();
  // Loads the row at `row`; returns false past the last one.
  bool Load(Source* source) const;
  // Returns whether a later source deletes a range that contains this row of source `age`.
  bool IsDeleted(std::string_view primary_key, size_t age);

  const PhysicalType kind_;
  std::vector<std::unique_ptr<Source>> sources_;  // by age
  // Sources with rows left. The top has the least row, and is the latest source with that row.
  std::priority_queue<Source*, std::vector<Source*>, IsBehind> heap_;
  bool begun_ = false;
  bool has_ranges_ = false;
  std::string at_;  // the row being read
};

}  // namespace cairn
