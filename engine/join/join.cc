#include "cairn/join.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"
#include "engine/shards/open_index.h"
#include "engine/util/cursor_tag.h"
#include "engine/util/scan_cursor.h"
#include "index/keys/key_nulls.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// The distinct keys of an index in ascending order, without keys that have a null in any part, one
// page at a time. A join scans them. Not thread-safe.
class KeyGroups {
 public:
  // Starts at the first key, or at the key in `from` if it has one. `index` must not change.
  // `with_rows`: whether rows() will be called.
  KeyGroups(const SecondaryIndex& index, EncodedKeys from, bool with_rows,
            const StopCondition& stop);

  // Reads the next page. Returns false if there are no more keys. Errors: those of the index's
  // queries.
  absl::StatusOr<bool> Next();

  EncodedKeys& keys() { return keys_; }
  size_t size() const { return counts_.size(); }
  // Return the number of entries with key i, and their rows in the index's order.
  uint64_t count(size_t i) const { return counts_[i]; }
  absl::Span<const GlobalRowId> rows(size_t i) const {
    return absl::MakeConstSpan(rows_).subspan(first_[i], counts_[i]);
  }

 private:
  absl::Status ReadLast();

  const SecondaryIndex& index_;
  const QueryOptions query_;
  const bool with_rows_;
  EncodedKeys from_;  // the next page's first key; empty: the index's first key
  Bound bound_;       // whether the next page includes from_
  bool exhausted_ = false;

  FindResult page_;
  EncodedKeys keys_;
  std::vector<uint64_t> counts_;
  std::vector<size_t> first_;  // in rows_
  std::vector<GlobalRowId> rows_;
};

// Number of entries per page: enough for a batch of lookups to be at its fastest.
constexpr uint64_t kEntriesOfPage = uint64_t{1} << 16;

bool SameKey(const EncodedKeys& keys, size_t i, size_t j) {
  return WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    return KeyAt<Key>(keys, i) == KeyAt<Key>(keys, j);
  });
}

// Appends key i of `keys` to `to`. Both have the same kind.
void AppendKeyOf(const EncodedKeys& keys, size_t i, EncodedKeys* to) {
  WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    AppendKey<Key>(KeyAt<Key>(keys, i), to);
  });
}

// Whether key i of a batch has a null in any part.
absl::StatusOr<bool> HasNullIn(KeyBatch keys, size_t i, const KeyCodec& codec) {
  if (codec.nulls() == NullPolicy::kSkip) return false;
  EncodedKeys key(keys.kind());
  WithPhysicalKey(keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    AppendKey<Key>(keys.as<Key>()[i], &key);
  });
  return HasNull(codec, key, 0);
}

KeyGroups::KeyGroups(const SecondaryIndex& index, EncodedKeys from, bool with_rows,
                     const StopCondition& stop)
    : index_(index),
      query_(stop.As<QueryOptions>()),
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
    QueryOptions options = query_;
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
        for (size_t j = begin; j < end; ++j) rows_.push_back(page_.row(j));
      }
    }
  }
  return true;
}

// The last key may have more entries after the page, so this queries that key.
absl::Status KeyGroups::ReadLast() {
  if (!with_rows_) {
    return index_.Count(RangeBatch::Equal(from_.Batch()), absl::MakeSpan(&counts_.back(), 1),
                        query_);
  }
  FindResult found;
  RETURN_IF_ERROR(index_.Find(from_.Batch(), &found, query_));
  counts_.back() = found.row_ids.size();
  for (size_t j = 0; j < found.row_ids.size(); ++j) rows_.push_back(found.row(j));
  return absl::OkStatus();
}

// A row among those of its key, identified in a way that survives a merge. An index returns the
// rows of a key in this order.
struct JoinRow {
  uint32_t shard = 0;
  std::string_view primary_key;

  auto operator<=>(const JoinRow&) const = default;
};

// The position after one pair of a join, encoded as an opaque string (JoinResult::cursor).
//
// Bytes, little-endian: the shards of the left and of the right row (4 each), the length of the
// ScanCursor (4), the ScanCursor of the key with the left row's primary key, the right row's
// primary key.
struct JoinCursor {
  ScanCursor key;  // in the left index's encoding, without a primary key
  JoinRow left;
  JoinRow right;

  std::string Encode() const;
  // The views point into `text`. InvalidArgument: `text` is not a cursor over keys of `kind`.
  static absl::StatusOr<JoinCursor> Decode(std::string_view text, PhysicalType kind);
};

constexpr size_t kHeaderBytes = 12;

void AppendU32(uint32_t number, std::string* text) {
  for (int shift = 0; shift < 32; shift += 8) text->push_back(static_cast<char>(number >> shift));
}

uint32_t U32At(std::string_view text, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) {
    number |= uint32_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  }
  return number;
}

std::string JoinCursor::Encode() const {
  ScanCursor scan = key;
  scan.primary_key = left.primary_key;
  const std::string place = scan.Encode();
  std::string text;
  AppendU32(left.shard, &text);
  AppendU32(right.shard, &text);
  AppendU32(static_cast<uint32_t>(place.size()), &text);
  text.append(place).append(right.primary_key);
  return text;
}

absl::StatusOr<JoinCursor> JoinCursor::Decode(std::string_view text, PhysicalType kind) {
  if (text.size() < kHeaderBytes || U32At(text, 8) > text.size() - kHeaderBytes) {
    return absl::InvalidArgumentError("expected a cursor of a join, found something else");
  }
  const size_t place_bytes = U32At(text, 8);
  JoinCursor cursor;
  ASSIGN_OR_RETURN(cursor.key, ScanCursor::Decode(text.substr(kHeaderBytes, place_bytes), kind));
  cursor.left = {U32At(text, 0), cursor.key.primary_key};
  cursor.right = {U32At(text, 4), text.substr(kHeaderBytes + place_bytes)};
  cursor.key.primary_key = {};
  return cursor;
}

std::string TypesText(const KeyCodec& codec) {
  std::string text;
  for (const DataType type : codec.parts()) {
    text.append(text.empty() ? "" : ", ").append(DataTypeName(type));
  }
  return text;
}

// Returns whether both have the same types. Text and bytes count as the same.
bool SameTypes(const KeyCodec& a, const KeyCodec& b) {
  const auto plain = [](DataType type) {
    return type == DataType::kText ? DataType::kBytes : type;
  };
  return std::equal(a.parts().begin(), a.parts().end(), b.parts().begin(), b.parts().end(),
                    [&](DataType x, DataType y) { return plain(x) == plain(y); });
}

// Two pinned indexes. The join scans one and looks up its keys in the other.
class Sides {
 public:
  static absl::StatusOr<Sides> Pin(const SecondaryIndex& left, const SecondaryIndex& right,
                                   const StopCondition& stop) {
    if (!SameTypes(left.codec(), right.codec())) {
      return absl::InvalidArgumentError(
          absl::StrFormat("expected indexes with keys of the same types, got (%s) and (%s)",
                          TypesText(left.codec()), TypesText(right.codec())));
    }
    Sides sides;
    const QueryOptions query = stop.As<QueryOptions>();
    ASSIGN_OR_RETURN(sides.left_, left.Pin(query));
    ASSIGN_OR_RETURN(sides.right_, right.Pin(query));
    uint64_t entries[2] = {};
    RETURN_IF_ERROR(sides.left_->Count(RangeBatch::Everything(sides.left_->kind()),
                                       absl::MakeSpan(&entries[0], 1)));
    RETURN_IF_ERROR(sides.right_->Count(RangeBatch::Everything(sides.right_->kind()),
                                        absl::MakeSpan(&entries[1], 1)));
    sides.scans_right_ = entries[1] < entries[0];
    return sides;
  }

  const SecondaryIndex& left() const { return *left_; }
  const SecondaryIndex& right() const { return *right_; }
  bool scans_right() const { return scans_right_; }
  const SecondaryIndex& scanned() const { return scans_right_ ? *right_ : *left_; }
  const SecondaryIndex& other() const { return scans_right_ ? *left_ : *right_; }

 private:
  std::shared_ptr<const SecondaryIndex> left_, right_;
  bool scans_right_ = false;
};

// Converts keys of one codec to those of another codec with the same types. They are equal unless
// only one codec supports nulls.
class Recoder {
 public:
  Recoder(const KeyCodec& from, const KeyCodec& to)
      : from_(from), to_(to), same_(from.nulls() == to.nulls()), keys_(to.kind()) {}

  // The result is valid until the next call, and while `keys` is.
  absl::StatusOr<EncodedKeys*> Recode(EncodedKeys* keys) {
    if (same_) return keys;
    keys_.Clear(to_.kind());
    std::vector<DataValue> values;
    std::string scratch;
    for (size_t i = 0; i < keys->size(); ++i) {
      RETURN_IF_ERROR(from_.Decode(*keys, i, &values, &scratch));
      RETURN_IF_ERROR(to_.Append(values, &keys_));
    }
    return &keys_;
  }

 private:
  const KeyCodec& from_;
  const KeyCodec& to_;
  const bool same_;
  EncodedKeys keys_;
};

// Returns SourcesChecksum of an index sharded by source; otherwise 0.
uint64_t SourcesOf(const SecondaryIndex& index) {
  const std::optional<IndexVersions> open = VersionsOf(index);
  return open.has_value() && open->by_source ? SourcesChecksum(open->versions) : 0;
}

// Queries the other index for ascending keys.
absl::Status LookUp(const SecondaryIndex& index, EncodedKeys* keys, const StopCondition& stop,
                    FindResult* found) {
  QueryOptions options = stop.As<QueryOptions>();
  options.sorted_input = true;
  return index.Find(keys->Batch(), found, options);
}

class Joiner {
 public:
  Joiner(const Sides& sides, const JoinOptions& options, JoinResult* rows)
      : sides_(sides), options_(options), stop_(StopCondition::Of(options)), rows_(*rows) {}

  absl::Status Run() {
    rows_.left.clear();
    rows_.right.clear();
    rows_.keys.Clear(sides_.left().kind());
    rows_.cursor.clear();
    ASSIGN_OR_RETURN(EncodedKeys from, Begin());
    KeyGroups groups(sides_.scanned(), std::move(from), /*with_rows=*/true, stop_);
    Recoder recoder(sides_.scanned().codec(), sides_.other().codec());
    FindResult found;
    while (!full_ && options_.limit > 0) {
      RETURN_IF_ERROR(stop_.Check());
      ASSIGN_OR_RETURN(const bool more, groups.Next());
      if (!more) break;
      ASSIGN_OR_RETURN(EncodedKeys* const lookups, recoder.Recode(&groups.keys()));
      RETURN_IF_ERROR(LookUp(sides_.other(), lookups, stop_, &found));
      const EncodedKeys& left_keys = sides_.scans_right() ? *lookups : groups.keys();
      for (size_t i = 0; i < groups.size() && !full_; ++i) {
        if (found[i].empty()) continue;
        found_rows_.clear();
        for (uint64_t j = found.offsets[i]; j < found.offsets[i + 1]; ++j) {
          found_rows_.push_back(found.row(j));
        }
        RETURN_IF_ERROR(sides_.scans_right()
                            ? AppendPairs(left_keys, i, found_rows_, groups.rows(i))
                            : AppendPairs(left_keys, i, groups.rows(i), found_rows_));
      }
    }
    if (!full_) rows_.cursor.clear();
    RETURN_IF_ERROR(stop_.Check());
    RETURN_IF_ERROR(sides_.left().Columns(rows_.left, options_.left_columns, &rows_.left_columns));
    RETURN_IF_ERROR(stop_.Check());
    return sides_.right().Columns(rows_.right, options_.right_columns, &rows_.right_columns);
  }

 private:
  // The tag of the join's cursors.
  CursorTag Tag() const {
    return CursorTag::OfText(
        absl::StrCat("join\n", SourcesOf(sides_.left()), "\n", sides_.left().spec().ToString(),
                     "\n", SourcesOf(sides_.right()), "\n", sides_.right().spec().ToString()));
  }

  // Reads the cursor. Returns the key at which the scan begins, or no key.
  absl::StatusOr<EncodedKeys> Begin() {
    const KeyCodec& left = sides_.left().codec();
    EncodedKeys key(left.kind());
    if (options_.after.empty()) return key;
    ASSIGN_OR_RETURN(const std::string_view after,
                     Tag().Remove(options_.after, "JoinOptions::after"));
    ASSIGN_OR_RETURN(after_, JoinCursor::Decode(after, left.kind()));
    WithPhysicalKey(left.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      AppendKey<Key>(after_->key.key<Key>(), &key);
    });
    if (!sides_.scans_right()) return key;
    Recoder recoder(left, sides_.scanned().codec());
    const absl::StatusOr<EncodedKeys*> recoded = recoder.Recode(&key);
    if (!recoded.ok()) {
      return absl::InvalidArgumentError(
          "JoinOptions::after: expected a key that both indexes can have");
    }
    return std::move(**recoded);
  }

  // Returns whether key i is the cursor's key.
  bool IsAtCursor(const EncodedKeys& keys, size_t i) const {
    if (!after_.has_value()) return false;
    return WithPhysicalKey(keys.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      return KeyAt<Key>(keys, i) == after_->key.key<Key>();
    });
  }

  // Returns the place of a row among those of one key. In an index sharded by key range, rows of
  // one key ascend by primary key over all shards, and a later generation may have other shards.
  static JoinRow PlaceOf(bool by_source, GlobalRowId row, std::string_view primary_key) {
    return {by_source ? ShardOf(row) : 0, primary_key};
  }
  // Returns the position of the first row that is not before `place`, or, if `is_behind`, that is
  // after it.
  static absl::StatusOr<size_t> FindPlace(const SecondaryIndex& index,
                                          absl::Span<const GlobalRowId> rows, const JoinRow& place,
                                          bool is_behind) {
    const bool by_source = SourcesOf(index) != 0;
    StringList primary_keys;
    RETURN_IF_ERROR(index.PrimaryKeys(rows, &primary_keys));
    size_t i = 0;
    for (; i < rows.size(); ++i) {
      const JoinRow row = PlaceOf(by_source, rows[i], primary_keys[i]);
      if (row > place || (row == place && !is_behind)) break;
    }
    return i;
  }

  // Appends the pairs of key i, up to the limit.
  absl::Status AppendPairs(const EncodedKeys& left_keys, size_t i,
                           absl::Span<const GlobalRowId> left,
                           absl::Span<const GlobalRowId> right) {
    size_t l = 0, r = 0;
    if (IsAtCursor(left_keys, i)) {
      ASSIGN_OR_RETURN(l, FindPlace(sides_.left(), left, after_->left, /*is_behind=*/false));
      ASSIGN_OR_RETURN(const size_t behind,
                       FindPlace(sides_.left(), left, after_->left, /*is_behind=*/true));
      if (l != behind) {
        ASSIGN_OR_RETURN(r, FindPlace(sides_.right(), right, after_->right, /*is_behind=*/true));
      }
    }
    for (; l < left.size(); ++l, r = 0) {
      RETURN_IF_ERROR(stop_.Check());
      const absl::Span<const GlobalRowId> pairs = right.subspan(
          r,
          static_cast<size_t>(std::min<uint64_t>(options_.limit - rows_.size(), right.size() - r)));
      rows_.left.insert(rows_.left.end(), pairs.size(), left[l]);
      rows_.right.insert(rows_.right.end(), pairs.begin(), pairs.end());
      for (size_t p = 0; options_.with_keys && p < pairs.size(); ++p) {
        AppendKeyOf(left_keys, i, &rows_.keys);
      }
      if (rows_.size() == options_.limit && !pairs.empty()) {
        RETURN_IF_ERROR(SetCursor(left_keys, i));
      }
      full_ = r + pairs.size() < right.size();
      if (full_) break;
    }
    return absl::OkStatus();
  }

  // Sets the cursor to the position after the last pair, which has key i.
  absl::Status SetCursor(const EncodedKeys& keys, size_t i) {
    StringList left, right;
    RETURN_IF_ERROR(sides_.left().PrimaryKeys({rows_.left.back()}, &left));
    RETURN_IF_ERROR(sides_.right().PrimaryKeys({rows_.right.back()}, &right));
    JoinCursor cursor;
    cursor.key = ScanCursor::After(keys, i, {});
    cursor.left = PlaceOf(SourcesOf(sides_.left()) != 0, rows_.left.back(), left[0]);
    cursor.right = PlaceOf(SourcesOf(sides_.right()) != 0, rows_.right.back(), right[0]);
    rows_.cursor = Tag().Add(cursor.Encode());
    return absl::OkStatus();
  }

  const Sides& sides_;
  const JoinOptions& options_;
  const StopCondition stop_;
  JoinResult& rows_;
  std::optional<JoinCursor> after_;
  std::vector<GlobalRowId> found_rows_;  // of the current key
  bool full_ = false;                    // the limit is reached and there is another pair
};

absl::StatusOr<uint64_t> Count(const Sides& sides, const StopCondition& stop) {
  KeyGroups groups(sides.scanned(), EncodedKeys(sides.scanned().kind()), /*with_rows=*/false, stop);
  Recoder recoder(sides.scanned().codec(), sides.other().codec());
  std::vector<uint64_t> counts;
  uint64_t pairs = 0;
  while (true) {
    RETURN_IF_ERROR(stop.Check());
    ASSIGN_OR_RETURN(const bool more, groups.Next());
    if (!more) return pairs;
    ASSIGN_OR_RETURN(EncodedKeys* const lookups, recoder.Recode(&groups.keys()));
    counts.resize(groups.size());
    QueryOptions options = stop.As<QueryOptions>();
    options.sorted_input = true;
    RETURN_IF_ERROR(
        sides.other().Count(RangeBatch::Equal(lookups->Batch()), absl::MakeSpan(counts), options));
    for (size_t i = 0; i < counts.size(); ++i) {
      uint64_t product = 0;
      if (__builtin_mul_overflow(groups.count(i), counts[i], &product) ||
          __builtin_add_overflow(pairs, product, &pairs)) {
        return absl::OutOfRangeError("the join has more than 2^64 - 1 pairs");
      }
    }
  }
}

}  // namespace

absl::Status Join(const SecondaryIndex& left, const SecondaryIndex& right,
                  const JoinOptions& options, JoinResult* rows) {
  return Guarded("joining two indexes", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Sides sides, Sides::Pin(left, right, StopCondition::Of(options)));
    return Joiner(sides, options, rows).Run();
  });
}

absl::StatusOr<uint64_t> CountJoin(const SecondaryIndex& left, const SecondaryIndex& right,
                                   const JoinOptions& options) {
  return Guarded("counting a join's pairs", [&]() -> absl::StatusOr<uint64_t> {
    const StopCondition stop = StopCondition::Of(options);
    ASSIGN_OR_RETURN(const Sides sides, Sides::Pin(left, right, stop));
    return Count(sides, stop);
  });
}

absl::Status JoinKeys(KeyBatch keys, const SecondaryIndex& index, const JoinOptions& options,
                      JoinResult* rows) {
  if (options.limit != JoinOptions().limit || !options.after.empty() || options.with_keys ||
      !options.left_columns.empty()) {
    return absl::InvalidArgumentError(
        "JoinOptions: a join of keys with an index supports only right_columns, cancelled and "
        "deadline");
  }
  return Guarded("joining keys with an index", [&]() -> absl::Status {
    const QueryOptions query = StopCondition::Of(options).As<QueryOptions>();
    ASSIGN_OR_RETURN(const std::shared_ptr<const SecondaryIndex> pinned, index.Pin(query));
    rows->left.clear();
    rows->right.clear();
    rows->keys.Clear(pinned->kind());
    rows->left_columns.clear();
    rows->cursor.clear();
    FindResult found;
    size_t begin = 0;
    do {  // also for an empty batch, to check its type
      RETURN_IF_ERROR(StopCondition::Of(options).Check());
      const KeyBatch slice =
          keys.Slice(begin, std::min<size_t>(keys.size() - begin, kEntriesOfPage));
      RETURN_IF_ERROR(pinned->Find(slice, &found, query));
      for (size_t i = 0; i < found.size(); ++i) {
        if (found[i].empty()) continue;
        ASSIGN_OR_RETURN(const bool has_null, HasNullIn(slice, i, pinned->codec()));
        if (has_null) continue;
        for (uint64_t j = found.offsets[i]; j < found.offsets[i + 1]; ++j) {
          rows->left.push_back(begin + i);
          rows->right.push_back(found.row(j));
        }
      }
      begin += slice.size();
    } while (begin < keys.size());
    return pinned->Columns(rows->right, options.right_columns, &rows->right_columns);
  });
}

}  // namespace cairn
