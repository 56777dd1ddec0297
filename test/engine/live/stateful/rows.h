#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cairn/extractor.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/merge_operator.h"
#include "test/engine/live/stateful/program.h"

// The rows of the stateful test, the effects of operands and filters on them, and the indexes. Each
// index has a separate rule for its entries, which shares no code with the library.

namespace cairn::stateful {

using Rows = std::map<std::string, std::string>;

// Rows whose keys begin with 'x' may be entities, which have no merge operands.
inline constexpr uint32_t kPlainKeys = 12;
inline std::string RowKey(uint32_t i) {
  return i < kPlainKeys ? absl::StrFormat("k%02u", i) : absl::StrFormat("x%02u", i - kPlainKeys);
}
// city|age|mail|tag,tag. Each value has a unique mail.
inline std::string RowValue(uint32_t i) {
  return absl::StrFormat("c%u|%u|m%u|t%u,t%u", i % 5, i % 3, i, i % 3, i % 4 + 1);
}
inline std::string Operand(uint32_t i) {
  return absl::StrCat("t", i % 6);
}

inline constexpr char kSeparators[] = {',', '|'};  // of the merge operators

inline std::string Merged(const std::string* row, const std::string& operand, uint32_t version) {
  if (row == nullptr) return operand;
  if (row->size() > 60) return *row;
  return absl::StrCat(*row, std::string(1, kSeparators[version]), operand);
}

class AppendingOperator final : public rocksdb::MergeOperator {
 public:
  explicit AppendingOperator(uint32_t version) : version_(version) {}
  const char* Name() const override { return version_ == 0 ? "AppendComma" : "AppendBar"; }
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    std::string row;
    bool is_there = in.existing_value != nullptr;
    if (is_there) row = in.existing_value->ToString();
    for (const rocksdb::Slice& operand : in.operand_list) {
      row = Merged(is_there ? &row : nullptr, operand.ToString(), version_);
      is_there = true;
    }
    out->new_value = std::move(row);
    return true;
  }

 private:
  const uint32_t version_;
};

// Removes the rows of city c3, or changes their city to c4.
class CityFilter final : public rocksdb::CompactionFilter {
 public:
  explicit CityFilter(uint32_t what) : removes_(what == kRemovingFilter) {}
  const char* Name() const override { return "CityFilter"; }
  bool Filter(int, const rocksdb::Slice&, const rocksdb::Slice& value, std::string* new_value,
              bool* changed) const override {
    if (!value.starts_with("c3|")) return false;
    if (removes_) return true;
    *new_value = "c4|" + value.ToString().substr(3);
    *changed = true;
    return false;
  }

 private:
  const bool removes_;
};

using Part = std::variant<uint64_t, std::string>;
using Key = std::vector<Part>;
struct Entry {
  Key key;
  std::string row;

  friend auto operator<=>(const Entry&, const Entry&) = default;
};

inline std::vector<std::string> FieldsOf(const std::string& value) {
  return absl::StrSplit(value, '|');
}
inline std::vector<Key> TagsOf(const std::string& value, uint32_t version) {
  const std::vector<std::string> fields = FieldsOf(value);
  std::vector<Key> keys;
  if (fields.size() < 4) return keys;
  const std::vector<std::string> tags = absl::StrSplit(fields[3], ',');
  for (const std::string& tag : tags) {
    keys.push_back({version == 0 ? tag : "new " + tag});
  }
  return keys;
}

// An index that programs may have.
struct IndexKind {
  const char* name;
  const char* spec;
  size_t family;
  bool unique;
  std::vector<Key> (*keys)(const std::string& row_key, const std::string& value,
                           uint32_t extractor);
  // The included column, if any, and its text for a row.
  const char* column;
  std::string (*column_of)(const std::string& value);
};

inline std::vector<Key> CityOf(const std::string&, const std::string& value, uint32_t) {
  return {{FieldsOf(value)[0]}};
}
inline std::vector<Key> PlaceOf(const std::string&, const std::string& value, uint32_t) {
  const std::vector<std::string> fields = FieldsOf(value);
  uint64_t age = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &age)) return {};
  return {{fields[0], age}};
}
inline std::vector<Key> MailOf(const std::string&, const std::string& value, uint32_t) {
  const std::vector<std::string> fields = FieldsOf(value);
  if (fields.size() < 3) return {};
  return {{fields[2]}};
}
inline std::vector<Key> AllTagsOf(const std::string&, const std::string& value, uint32_t version) {
  return TagsOf(value, version);
}
inline std::vector<Key> WholeOf(const std::string&, const std::string& value, uint32_t) {
  return {{value}};
}
inline std::vector<Key> PrefixOf(const std::string& row_key, const std::string&, uint32_t) {
  return {{row_key.substr(0, 2)}};
}
inline std::string FirstFieldOf(const std::string& value) {
  return FieldsOf(value)[0];
}
inline std::string WholeValueOf(const std::string& value) {
  return value;
}

inline constexpr size_t kMailIndex = 4;
inline const std::vector<IndexKind>& IndexKinds() {
  static const std::vector<IndexKind> kinds = {
      {"city", "city = value.field('|', 0):text, include(all = value:bytes)", 0, false, CityOf,
       "all", WholeValueOf},
      {"place", "place = value.field('|', 0):text, value.field('|', 1):u8, on_error=skip", 0, false,
       PlaceOf, nullptr, nullptr},
      {"tags", "tags = custom('stateful_tags'):text, include(town = value.field('|', 0):text)", 0,
       false, AllTagsOf, "town", FirstFieldOf},
      {"whole", "whole = value:bytes, cf=a", 1, false, WholeOf, nullptr, nullptr},
      {"mail", "mail = value.field('|', 2):text, unique=true, cf=a", 1, true, MailOf, nullptr,
       nullptr},
      {"place_a", "place_a = value.field('|', 0):text, value.field('|', 1):u8, on_error=skip, cf=a",
       1, false, PlaceOf, nullptr, nullptr},
      {"city_b", "city_b = value.field('|', 0):text, cf=b", 2, false, CityOf, nullptr, nullptr},
      {"prefix_b", "prefix_b = key[0:2]:bytes, cf=b, include(all = value:bytes)", 2, false,
       PrefixOf, "all", WholeValueOf},
  };
  return kinds;
}

// In index order. A row that has a key twice has one entry for it.
inline std::vector<Entry> EntriesOf(const IndexKind& kind, const Rows& rows, uint32_t extractor) {
  std::set<Entry> entries;
  for (const auto& [row_key, value] : rows) {
    for (Key& key : kind.keys(row_key, value, extractor)) entries.insert({std::move(key), row_key});
  }
  return {entries.begin(), entries.end()};
}
// Whether two rows have the same key of the index.
inline bool HasDuplicates(const IndexKind& kind, const Rows& rows) {
  const std::vector<Entry> entries = EntriesOf(kind, rows, 0);
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].key == entries[i - 1].key) return true;
  }
  return false;
}

// The extractor of the tags in this version of the application. An extractor with other keys under
// the same Version() is not tested: no index can notice that.
class TagExtractor final : public KeyExtractor {
 public:
  static std::atomic<uint32_t>& version_now() {
    static std::atomic<uint32_t> now = 0;
    return now;
  }
  absl::Status Extract(const RowView& row, KeySink* sink) const override {
    for (const Key& key : TagsOf(std::string(row.value), version_now())) {
      sink->Add(std::string_view(std::get<std::string>(key[0])));
    }
    return absl::OkStatus();
  }
  uint64_t Version() const override { return version_now(); }
};

}  // namespace cairn::stateful
