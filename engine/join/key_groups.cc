#include "engine/join/key_groups.h"

#include <utility>

#include "index/keys/key_nulls.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// Entries that are read at a time: as many as a batch of lookups needs to be at its fastest.
constexpr uint64_t kEntriesOfPage = uint64_t{1} << 16;

// Whether keys i and j are equal.
bool SameKey(const EncodedKeys& keys, size_t i, size_t j) {
  return WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    return KeyAt<Key>(keys, i) == KeyAt<Key>(keys, j);
  });
}

}  // namespace

void AppendKeyOf(const EncodedKeys& keys, size_t i, EncodedKeys* to) {
  WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    AppendKey<Key>(KeyAt<Key>(keys, i), to);
  });
}

KeyGroups::KeyGroups(const SecondaryIndex& index, EncodedKeys from, bool with_rows)
    : index_(index),
      with_rows_(with_rows),
      from_(std::move(from)),
      bound_(from_.empty() ? Bound::kOpen : Bound::kInclusive),
      keys_(index.kind()) {}

absl::StatusOr<bool> KeyGroups::Next() {
  keys_.Clear(index_.kind());
  counts_.clear();
  first_.clear();
  rows_.clear();
  while (counts_.empty()) {
    if (exhausted_) return false;
    RangeBatch range = RangeBatch::Everything(index_.kind());
    if (!from_.empty()) {
      range.lower = from_.Batch();
      range.lower_bound = bound_;
    }
    QueryOptions options;
    options.with_keys = true;
    options.limit = kEntriesOfPage;
    RETURN_IF_ERROR(index_.Scan(range, &page_, options));
    exhausted_ = page_.cursors[0].empty();
    const size_t entries = page_.row_ids.size();
    for (size_t begin = 0, end = 0; begin < entries; begin = end) {
      for (end = begin + 1; end < entries && SameKey(page_.keys, begin, end);) ++end;
      ASSIGN_OR_RETURN(const bool has_null, HasNull(index_.codec(), page_.keys, begin));
      const bool is_last = end == entries && !exhausted_;
      if (is_last) {
        from_.Clear(index_.kind());
        AppendKeyOf(page_.keys, begin, &from_);
        bound_ = Bound::kExclusive;
      }
      if (has_null) continue;
      AppendKeyOf(page_.keys, begin, &keys_);
      counts_.push_back(end - begin);
      first_.push_back(rows_.size());
      if (is_last) {
        RETURN_IF_ERROR(ReadLast());
      } else if (with_rows_) {
        for (size_t j = begin; j < end; ++j) rows_.push_back(page_.global_row(j));
      }
    }
  }
  return true;
}

// The last key's entries may go on behind the page: they are found by the key.
absl::Status KeyGroups::ReadLast() {
  if (!with_rows_) {
    return index_.Count(RangeBatch::Equal(from_.Batch()), absl::MakeSpan(&counts_.back(), 1));
  }
  FindResult found;
  RETURN_IF_ERROR(index_.Find(from_.Batch(), &found));
  counts_.back() = found.row_ids.size();
  for (size_t j = 0; j < found.row_ids.size(); ++j) rows_.push_back(found.global_row(j));
  return absl::OkStatus();
}

}  // namespace cairn
