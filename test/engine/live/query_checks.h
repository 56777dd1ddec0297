#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "cairn/lookup.h"
#include "cairn/predicate.h"
#include "test/require_ok.h"

namespace cairn {

// The indexes that CheckQueries asks. Rows are "color|number".
inline constexpr std::string_view kColor = "color=value.field('|',0):text";
inline constexpr std::string_view kNumber =
    "number=value.field('|',1):u32,include(color=value.field('|',0):text),on_error=skip";

// Compares all kinds of queries with a scan of the rows: `rows` iterates over the state at which
// the queries answer with the options `at`.
inline void CheckQueries(IndexedDB* db, const LookupOptions& at, rocksdb::Iterator* rows) {
  std::map<std::pair<std::string, std::string>, std::string> by_color;  // color, key -> value
  std::map<std::pair<uint32_t, std::string>, std::string> by_number;
  for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
    const std::string key = rows->key().ToString(), value = rows->value().ToString();
    const size_t bar = value.find('|');
    by_color[{value.substr(0, bar), key}] = value;
    uint32_t number = 0;
    if (bar != std::string::npos && absl::SimpleAtoi(value.substr(bar + 1), &number)) {
      by_number[{number, key}] = value;
    }
  }
  RequireOk(FromRocksDb(rows->status(), "scanning"));

  const FoundRows found = RequireOk(db->LookupRows("color", KeyQuery::Everything(), at));
  BOOST_REQUIRE(found.size() == by_color.size());
  size_t i = 0;
  for (const auto& [entry, value] : by_color) {
    BOOST_REQUIRE(found[i].primary_key == entry.second);
    BOOST_REQUIRE(found[i++].value == value);
  }
  LookupOptions with_color = at;
  with_color.columns = {"color"};
  const FoundKeys numbers = RequireOk(db->Lookup("number", KeyQuery::Everything(), with_color));
  BOOST_REQUIRE(numbers.size() == by_number.size());
  i = 0;
  for (const auto& [entry, value] : by_number) {
    BOOST_REQUIRE(numbers[i] == entry.second);
    BOOST_REQUIRE(numbers.columns()[0].bytes(i++) == value.substr(0, value.find('|')));
  }
  const auto of_color = [&](const std::string& color) {
    return std::count_if(by_color.begin(), by_color.end(),
                         [&](const auto& row) { return row.first.first == color; });
  };
  for (const char* color : {"red", "blue", "none"}) {
    const auto expected = static_cast<uint64_t>(of_color(color));
    BOOST_REQUIRE(RequireOk(db->Count("color", color, at))[0] == expected);
    BOOST_REQUIRE(RequireOk(db->Contains("color", color, at))[0] == (expected > 0));
  }
  IteratorOptions iterate;
  iterate.snapshot = at.snapshot;
  iterate.transaction = at.transaction;
  IndexIterator it = db->NewIterator("number", iterate);
  it.SeekToFirst();
  for (const auto& [entry, value] : by_number) {
    BOOST_REQUIRE(it.Valid());
    BOOST_REQUIRE(it.primary_key() == entry.second);
    it.Next();
  }
  BOOST_REQUIRE(!it.Valid());
  RequireOk(it.status());
  const auto group = RequireOk(db->PinGroup({"color", "number"}, at));
  const auto expected = std::count_if(by_number.begin(), by_number.end(), [](const auto& row) {
    return row.second.starts_with("red|") && row.first.first >= 5;
  });
  BOOST_REQUIRE(RequireOk(group->Count(Predicate("color", "red") &&
                                       Predicate("number", KeyQuery::AtLeast(5)))) ==
                static_cast<uint64_t>(expected));
}

// Returns a random row for these indexes.
inline std::string RandomValue(std::mt19937_64& random) {
  static const char* const kColors[] = {"red", "blue", "green", ""};
  std::string value = kColors[random() % 4];
  if (random() % 8 != 0) absl::StrAppend(&value, "|", random() % 10);
  return value;
}

}  // namespace cairn
