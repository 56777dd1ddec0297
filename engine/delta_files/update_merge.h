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

// Reads updates that came one after the other as the one that they come to: each row once, as the
// last of them has it, in primary-key order. Takes memory for some rows of each. One thread at a
// time; what allocates throws std::bad_alloc.
class UpdateMerge {
 public:
  explicit UpdateMerge(PhysicalType kind) : kind_(kind) {}

  // What came next, with keys of the kind: a file, which must outlive this, or rows in primary-key
  // order. All of it before the first Next.
  void Add(const DeltaFile& file);
  void Add(RowUpdates updates);

  // As DeltaReader's: the next `rows` rows, or as many as are left; false where there are none. The
  // first slice, which may have no rows, has the deleted ranges of all.
  bool Next(size_t rows, RowUpdates* updates);

 private:
  struct Source {
    size_t age;                           // its number: a higher one came later
    std::unique_ptr<DeltaReader> reader;  // null: all is in the slice
    RowUpdates slice;
    size_t row = 0;                // the next one of the slice
    std::string_view primary_key;  // its own
    RowUpdates deleted;            // the source's ranges
    std::vector<KeyRange> ranges;  // the same, ascending and apart
    size_t range = 0;              // the first one that does not end before what has been read
  };

  struct IsBehind {
    bool operator()(const Source* a, const Source* b) const {
      const int order = a->primary_key.compare(b->primary_key);
      return order != 0 ? order > 0 : a->age < b->age;
    }
  };

  void Begin();
  // Moves on to the row at `row`; false behind the last one.
  bool Load(Source* source) const;
  // Whether a row of a source is in a range that a later one deletes.
  bool IsDeleted(std::string_view primary_key, size_t age);

  const PhysicalType kind_;
  std::vector<std::unique_ptr<Source>> sources_;  // by age
  // Those with rows left: on top the least row, of it the latest.
  std::priority_queue<Source*, std::vector<Source*>, IsBehind> heap_;
  bool begun_ = false;
  bool has_ranges_ = false;
  std::string at_;  // the row that is being read
};

}  // namespace cairn
