#include "cairn/join.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "engine/join/join_cursor.h"
#include "engine/join/key_groups.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {
namespace {

std::string TypesText(const KeyCodec& codec) {
  std::string text;
  for (const DataType type : codec.parts()) {
    text.append(text.empty() ? "" : ", ").append(DataTypeName(type));
  }
  return text;
}

// Whether both name the same values, text and bytes among them.
bool SameTypes(const KeyCodec& a, const KeyCodec& b) {
  const auto plain = [](DataType type) {
    return type == DataType::kText ? DataType::kBytes : type;
  };
  return std::equal(a.parts().begin(), a.parts().end(), b.parts().begin(), b.parts().end(),
                    [&](DataType x, DataType y) { return plain(x) == plain(y); });
}

// Two indexes as they are now, of which one is scanned and the other looked up in.
class Sides {
 public:
  static absl::StatusOr<Sides> Pin(const SecondaryIndex& left, const SecondaryIndex& right) {
    if (!SameTypes(left.codec(), right.codec())) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a join of keys of (%s) with keys of (%s): expected the same types",
                          TypesText(left.codec()), TypesText(right.codec())));
    }
    Sides sides;
    ASSIGN_OR_RETURN(sides.left_, left.Pin());
    ASSIGN_OR_RETURN(sides.right_, right.Pin());
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

// Keys of one codec as another of the same types encodes them: the same ones, unless one has room
// for nulls.
class Recoder {
 public:
  Recoder(const KeyCodec& from, const KeyCodec& to)
      : from_(from), to_(to), same_(from.nulls() == to.nulls()), keys_(to.kind()) {}

  // Valid until the next call, and as long as `keys`.
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

// Asks the other index for ascending keys.
absl::Status LookUp(const SecondaryIndex& index, EncodedKeys* keys, FindResult* found) {
  QueryOptions options;
  options.sorted_input = true;
  return index.Find(keys->Batch(), found, options);
}

class Joiner {
 public:
  Joiner(const Sides& sides, const JoinOptions& options, JoinResult* rows)
      : sides_(sides), options_(options), rows_(*rows) {}

  absl::Status Run() {
    rows_.left.clear();
    rows_.right.clear();
    rows_.keys.Clear(sides_.left().kind());
    rows_.cursor.clear();
    ASSIGN_OR_RETURN(EncodedKeys from, Begin());
    KeyGroups groups(sides_.scanned(), std::move(from), /*with_rows=*/true);
    Recoder recoder(sides_.scanned().codec(), sides_.other().codec());
    FindResult found;
    while (!full_ && options_.limit > 0) {
      RETURN_IF_ERROR(CheckNotCancelled(options_.cancelled));
      ASSIGN_OR_RETURN(const bool more, groups.Next());
      if (!more) break;
      ASSIGN_OR_RETURN(EncodedKeys* const lookups, recoder.Recode(&groups.keys()));
      RETURN_IF_ERROR(LookUp(sides_.other(), lookups, &found));
      const EncodedKeys& left_keys = sides_.scans_right() ? *lookups : groups.keys();
      for (size_t i = 0; i < groups.size() && !full_; ++i) {
        if (found[i].empty()) continue;
        found_rows_.clear();
        for (uint64_t j = found.offsets[i]; j < found.offsets[i + 1]; ++j) {
          found_rows_.push_back(found.global_row(j));
        }
        RETURN_IF_ERROR(sides_.scans_right()
                            ? AppendPairs(left_keys, i, found_rows_, groups.rows(i))
                            : AppendPairs(left_keys, i, groups.rows(i), found_rows_));
      }
    }
    if (!full_) rows_.cursor.clear();
    RETURN_IF_ERROR(
        sides_.left().ColumnsOf(rows_.left, options_.left_columns, &rows_.left_columns));
    return sides_.right().ColumnsOf(rows_.right, options_.right_columns, &rows_.right_columns);
  }

 private:
  // Reads the cursor; the key at which the scan begins, or none.
  absl::StatusOr<EncodedKeys> Begin() {
    const KeyCodec& left = sides_.left().codec();
    EncodedKeys key(left.kind());
    if (options_.after.empty()) return key;
    ASSIGN_OR_RETURN(after_, JoinCursor::Decode(options_.after, left.kind()));
    switch (left.kind()) {
      case PhysicalType::kU32:
        key.AppendU32(static_cast<uint32_t>(after_->key.number));
        break;
      case PhysicalType::kU64:
        key.AppendU64(after_->key.number);
        break;
      case PhysicalType::kBytes:
        key.AppendBytes(after_->key.bytes);
        break;
    }
    if (!sides_.scans_right()) return key;
    Recoder recoder(left, sides_.scanned().codec());
    const absl::StatusOr<EncodedKeys*> recoded = recoder.Recode(&key);
    if (!recoded.ok()) {
      return absl::InvalidArgumentError("JoinOptions::after: a key that the indexes cannot have");
    }
    return std::move(**recoded);
  }

  // Whether key i is the cursor's.
  bool IsAtCursor(const EncodedKeys& keys, size_t i) const {
    if (!after_.has_value()) return false;
    switch (keys.kind()) {
      case PhysicalType::kU32:
        return keys.u32(i) == after_->key.number;
      case PhysicalType::kU64:
        return keys.u64(i) == after_->key.number;
      case PhysicalType::kBytes:
        break;
    }
    return keys.bytes(i) == after_->key.bytes;
  }

  // The first of the rows that are not before `place`, or behind it where `is_behind`.
  static absl::StatusOr<size_t> FindPlace(const SecondaryIndex& index,
                                          absl::Span<const GlobalRowId> rows, const JoinRow& place,
                                          bool is_behind) {
    StringList primary_keys;
    RETURN_IF_ERROR(index.PrimaryKeysOf(rows, &primary_keys));
    size_t i = 0;
    for (; i < rows.size(); ++i) {
      const JoinRow row{ShardOf(rows[i]), primary_keys[i]};
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
      RETURN_IF_ERROR(CheckNotCancelled(options_.cancelled));
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

  // Behind the last pair, which is of key i.
  absl::Status SetCursor(const EncodedKeys& keys, size_t i) {
    StringList left, right;
    RETURN_IF_ERROR(sides_.left().PrimaryKeysOf(absl::MakeConstSpan(&rows_.left.back(), 1), &left));
    RETURN_IF_ERROR(
        sides_.right().PrimaryKeysOf(absl::MakeConstSpan(&rows_.right.back(), 1), &right));
    JoinCursor cursor;
    cursor.key.kind = keys.kind();
    if (keys.kind() == PhysicalType::kU32) cursor.key.number = keys.u32(i);
    if (keys.kind() == PhysicalType::kU64) cursor.key.number = keys.u64(i);
    if (keys.kind() == PhysicalType::kBytes) cursor.key.bytes = keys.bytes(i);
    cursor.left = {ShardOf(rows_.left.back()), left[0]};
    cursor.right = {ShardOf(rows_.right.back()), right[0]};
    rows_.cursor = cursor.Encode();
    return absl::OkStatus();
  }

  const Sides& sides_;
  const JoinOptions& options_;
  JoinResult& rows_;
  std::optional<JoinCursor> after_;
  std::vector<GlobalRowId> found_rows_;  // of the key at hand
  bool full_ = false;                    // and there is another pair
};

absl::StatusOr<uint64_t> Count(const Sides& sides, const std::atomic<bool>* cancelled) {
  KeyGroups groups(sides.scanned(), EncodedKeys(sides.scanned().kind()), /*with_rows=*/false);
  Recoder recoder(sides.scanned().codec(), sides.other().codec());
  std::vector<uint64_t> counts;
  uint64_t pairs = 0;
  while (true) {
    RETURN_IF_ERROR(CheckNotCancelled(cancelled));
    ASSIGN_OR_RETURN(const bool more, groups.Next());
    if (!more) return pairs;
    ASSIGN_OR_RETURN(EncodedKeys* const lookups, recoder.Recode(&groups.keys()));
    counts.resize(groups.size());
    QueryOptions options;
    options.sorted_input = true;
    RETURN_IF_ERROR(
        sides.other().Count(RangeBatch::Equal(lookups->Batch()), absl::MakeSpan(counts), options));
    for (size_t i = 0; i < counts.size(); ++i) {
      uint64_t product = 0;
      if (__builtin_mul_overflow(groups.count(i), counts[i], &product) ||
          __builtin_add_overflow(pairs, product, &pairs)) {
        return absl::OutOfRangeError("a join of more than 2^64 - 1 pairs");
      }
    }
  }
}

}  // namespace

absl::Status Join(const SecondaryIndex& left, const SecondaryIndex& right,
                  const JoinOptions& options, JoinResult* rows) {
  return Guarded("joining two indexes", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Sides sides, Sides::Pin(left, right));
    return Joiner(sides, options, rows).Run();
  });
}

absl::StatusOr<uint64_t> CountJoin(const SecondaryIndex& left, const SecondaryIndex& right,
                                   const std::atomic<bool>* cancelled) {
  return Guarded("counting a join's pairs", [&]() -> absl::StatusOr<uint64_t> {
    ASSIGN_OR_RETURN(const Sides sides, Sides::Pin(left, right));
    return Count(sides, cancelled);
  });
}

absl::Status JoinKeys(KeyBatch keys, const SecondaryIndex& index, const JoinOptions& options,
                      JoinResult* rows) {
  if (options.limit != JoinOptions().limit || !options.after.empty() || options.with_keys ||
      !options.left_columns.empty()) {
    return absl::InvalidArgumentError(
        "a join of keys with an index takes right_columns alone of the options");
  }
  return Guarded("joining keys with an index", [&]() -> absl::Status {
    QueryOptions query;
    query.columns = options.right_columns;
    FindResult found;
    RETURN_IF_ERROR(index.Find(keys, &found, query));
    rows->left.clear();
    rows->right.clear();
    rows->keys.Clear(index.kind());
    rows->left_columns.clear();
    rows->right_columns = std::move(found.columns);
    rows->cursor.clear();
    for (size_t i = 0; i < found.size(); ++i) {
      for (uint64_t j = found.offsets[i]; j < found.offsets[i + 1]; ++j) {
        rows->left.push_back(i);
        rows->right.push_back(found.global_row(j));
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace cairn
