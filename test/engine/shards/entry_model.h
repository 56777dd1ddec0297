#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cairn/lookup.h"
#include "test/engine/test_database.h"

// Rows with several keys, and the sorted entries that an index of them has.

namespace cairn::entry_model {

using Part = std::variant<uint64_t, std::string>;
using Parts = std::vector<Part>;

// In index order; `shard` is that of an index sharded by source, otherwise 0.
struct Entry {
  Parts key;
  size_t shard = 0;
  std::string row;
  std::string column;

  bool operator<(const Entry& other) const {
    return std::tie(key, shard, row) < std::tie(other.key, other.shard, other.row);
  }
};
using EntryList = std::vector<Entry>;

// Compares a key with leading parts: -1, 0 or 1.
inline int Compare(const Parts& key, const Parts& leading) {
  const Parts same(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(leading.size()));
  return same < leading ? -1 : leading < same ? 1 : 0;
}

inline LogicalKey Logical(const Parts& parts) {
  std::vector<DataValue> values;
  for (const Part& part : parts) {
    if (const auto* number = std::get_if<uint64_t>(&part)) {
      values.emplace_back(*number);
    } else {
      values.emplace_back(std::string_view(std::get<std::string>(part)));
    }
  }
  return LogicalKey::OfParts(values);
}

inline std::string Text(absl::Span<const DataValue> key) {
  std::string text;
  for (const DataValue& part : key) {
    if (const auto* number = std::get_if<uint64_t>(&part)) {
      absl::StrAppend(&text, *number, ",");
    } else {
      text.append(std::get<std::string_view>(part)).append(",");
    }
  }
  return text;
}

// The kinds of keys of rows with the arrays "t", the text "c" and the number "n".
struct Kind {
  const char* spec;
  bool has_text;
  bool has_numbers;
};
inline constexpr Kind kKinds[] = {
    {"value.json('/t'):u32, include(n = value.json('/n'):text)", false, true},
    {"value.json('/c'):text, include(n = value.json('/n'):text)", true, false},
    {"value.json('/c'):text, value.json('/t'):u32, include(n = value.json('/n'):text)", true, true},
};

// Rows of a database, and its entries in an index.
struct Rows {
  struct Row {
    std::vector<uint64_t> numbers;
    std::string text;
    std::string column;
  };
  std::map<std::string, Row> rows;

  void Change(TestDatabase& db, size_t times, size_t universe, std::mt19937_64& random) {
    for (; times > 0; --times) {
      const std::string key = absl::StrFormat("r%04d", random() % universe);
      if (random() % 5 == 0) {
        db.Delete(key);
        rows.erase(key);
        continue;
      }
      Row row;
      for (uint64_t n = random() % 4; n > 0; --n) row.numbers.push_back(random() % 12);
      std::sort(row.numbers.begin(), row.numbers.end());
      row.numbers.erase(std::unique(row.numbers.begin(), row.numbers.end()), row.numbers.end());
      row.text = std::string(random() % 3, static_cast<char>('a' + random() % 3));
      row.column = absl::StrCat("n", random() % 1000);
      db.Put(key, absl::StrFormat(R"({"t":[%s],"c":"%s","n":"%s"})",
                                  absl::StrJoin(row.numbers, ","), row.text, row.column));
      rows[key] = row;
    }
  }

  void AddTo(const Kind& kind, size_t shard, EntryList* entries) const {
    for (const auto& [name, row] : rows) {
      if (!kind.has_numbers) {
        entries->push_back({{row.text}, shard, name, row.column});
        continue;
      }
      for (const uint64_t number : row.numbers) {
        Parts key;
        if (kind.has_text) key.emplace_back(row.text);
        key.emplace_back(number);
        entries->push_back({std::move(key), shard, name, row.column});
      }
    }
  }
};

inline Parts AnyKey(const Kind& kind, std::mt19937_64& random, bool leading) {
  Parts key;
  if (kind.has_text) {
    key.emplace_back(std::string(random() % 4, static_cast<char>('a' + random() % 4)));
    if (leading && random() % 2 == 0) return key;
  }
  if (kind.has_numbers) key.emplace_back(random() % 14);
  return key;
}

// A random range of keys, and whether a key is in it.
struct Range {
  KeyQuery query;
  std::function<bool(const Parts&)> has;
};
// `a` and `b` must outlive the result.
inline Range AnyRange(const Kind& kind, const Parts& a, const Parts& b, std::mt19937_64& random) {
  const LogicalKey lower = Logical(a), upper = Logical(b);
  switch (random() % 8) {
    case 0:
      return {KeyQuery::Range(lower, upper),
              [&](const Parts& key) { return Compare(key, a) >= 0 && Compare(key, b) < 0; }};
    case 1:
      return {KeyQuery::Between(lower, upper),
              [&](const Parts& key) { return Compare(key, a) >= 0 && Compare(key, b) <= 0; }};
    case 2:
      return {KeyQuery::GreaterThan(lower), [&](const Parts& key) { return Compare(key, a) > 0; }};
    case 3:
      return {KeyQuery::LessThan(upper), [&](const Parts& key) { return Compare(key, b) < 0; }};
    case 4:
      if (a.size() == 1 && kind.has_text && kind.has_numbers) {
        return {KeyQuery::Prefix(lower), [&](const Parts& key) { return Compare(key, a) == 0; }};
      }
      break;
    case 5:
      if (a.size() == 1 && kind.has_text) {
        return {KeyQuery::BytePrefix(lower), [&](const Parts& key) {
                  return absl::StartsWith(std::get<std::string>(key[0]),
                                          std::get<std::string>(a[0]));
                }};
      }
      if (a.size() == (kind.has_text ? 1u : 0u) + (kind.has_numbers ? 1u : 0u)) {
        return {KeyQuery(std::vector<LogicalKey>{lower}),
                [&](const Parts& key) { return Compare(key, a) == 0; }};
      }
      break;
    default:
      break;
  }
  return {KeyQuery::Everything(), [](const Parts&) { return true; }};
}

}  // namespace cairn::entry_model
