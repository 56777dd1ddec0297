#pragma once

// Rows of an index with all kinds of columns, and checks of its aggregates against an oracle.

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cairn/aggregate.h"
#include "test/engine/serve/aggregate_oracle.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/sanitizer.h"

namespace cairn {

inline constexpr bool kSmaller = kUnderAsan || kUnderTsan;
// Rows are "a|b|c|d|signed|float|single|text|tiny|wide|big"; keys are from the first four fields.
inline constexpr std::string_view kInclude =
    ",include(signed=value.field('|',4):i64,float=value.field('|',5):f64,"
    "single=value.field('|',6):f32,text=value.field('|',7):text,tiny=value.field('|',8):u8,"
    "wide=value.field('|',9):i64,big=value.field('|',10):u64,none=value.field('|',99):i32)";
inline const std::vector<std::string> kColumns = {"signed", "float", "single", "text",
                                                  "tiny",   "wide",  "big",    "none"};

// Every function of every column, except sums that may not fit.
inline std::vector<Aggregate> AllAggregates() {
  std::vector<Aggregate> all = {Aggregate::Count(), Aggregate::CountDistinct()};
  for (const std::string& column : kColumns) {
    all.push_back(Aggregate::Count(column));
    all.push_back(Aggregate::Min(column));
    all.push_back(Aggregate::Max(column));
    if (column == "text") continue;
    all.push_back(Aggregate::Avg(column));
    if (column != "wide" && column != "big") all.push_back(Aggregate::Sum(column));
  }
  return all;
}

struct Rows {
  explicit Rows(std::mt19937_64& from) : random(from) {}

  std::string Values() {
    const int64_t wide = random() % 8 == 0   ? INT64_MIN
                         : random() % 8 == 0 ? INT64_MAX
                                             : static_cast<int64_t>(random());
    const char* const odd[] = {"nan", "inf", "-inf", "-0", "0"};
    const std::string real = random() % odds == 0
                                 ? odd[random() % 5]
                                 : absl::StrFormat("%d.%02d", random() % 1000, random() % 100);
    const std::string fields[] = {
        absl::StrFormat("%d", static_cast<int64_t>(random() % 2001) - 1000),
        real,
        random() % odds == 0 ? odd[random() % 5] : absl::StrFormat("%d.5", random() % 100),
        std::string(random() % 3, 'x') + std::string(random() % 3, 'y'),
        absl::StrFormat("%d", random() % 256),
        absl::StrFormat("%d", wide),
        absl::StrFormat("%d", random() % 5 == 0 ? UINT64_MAX : random())};
    // The last fields may be missing, and are then null. With `nulls`, the last two key parts may
    // be null instead.
    const size_t there = !nulls && random() % 4 == 0 ? random() % 8 : 7;
    std::string text;
    for (size_t i = 0; i < there; ++i) text += "|" + fields[i];
    const uint64_t parts = nulls ? random() % 3 : 0;
    if (parts > 0) text += absl::StrFormat("|%d", random() % 5);
    if (parts > 1) text += absl::StrFormat("|%d", random() % 4);
    return text;
  }
  std::string Keys() {
    const std::string texts[] = {"", "a", "aa", "ab", "b", std::string("a\0b", 3), "zz"};
    return absl::StrFormat("%d|%d|%s|%d", first + random() % keys, random() % 5,
                           texts[random() % 7], random() % 3);
  }
  std::string Any() { return Keys() + Values(); }

  std::mt19937_64& random;
  uint64_t first = 0;  // of field 0, which has `keys` values from this one on
  uint64_t keys = 40;
  uint64_t odds = 10;  // one in `odds` floats is NaN, infinite or -0
  bool nulls = false;  // in fields 11 and 12, but not in included ones
};

// Ranges of an index: everything, present and absent keys, prefixes, crossed ranges.
struct SomeKeyRanges {
  SomeKeyRanges(const AggregateOracle& oracle, PhysicalType kind, size_t count,
                std::mt19937_64& random)
      : lower(kind), upper(kind) {
    const auto key = [&](EncodedKeys* to) {
      const EncodedKeys& keys = oracle.keys();
      const size_t at = oracle.size() == 0 ? 0 : random() % oracle.size();
      const bool beside = oracle.size() == 0 || random() % 4 == 0;
      if (kind == PhysicalType::kU32) {
        to->AppendU32(beside ? static_cast<uint32_t>(random() % 100) : keys.u32(at));
      } else if (kind == PhysicalType::kU64) {
        to->AppendU64(beside ? random() : keys.u64(at));
      } else {
        std::string bytes(oracle.size() == 0 ? "" : keys.bytes(at));
        if (beside) bytes.resize(bytes.size() / 2);
        if (beside && random() % 2 == 0) bytes += '\xFF';
        to->AppendBytes(bytes);
      }
    };
    for (size_t i = 0; i < count; ++i) {
      key(&lower);
      key(&upper);
      const uint64_t what = i == 0 ? 9 : random() % 10;
      const Bound ends[] = {Bound::kInclusive, Bound::kExclusive, Bound::kOpen};
      lower_bounds.push_back(what == 9 ? Bound::kOpen : ends[random() % 3]);
      upper_bounds.push_back(what == 9                                   ? Bound::kOpen
                             : what == 8 && kind == PhysicalType::kBytes ? Bound::kPrefix
                                                                         : ends[random() % 3]);
      if (upper_bounds.back() == Bound::kPrefix) lower_bounds.back() = Bound::kInclusive;
    }
  }
  RangeBatch Batch() {
    RangeBatch ranges;
    ranges.lower = lower.Batch();
    ranges.upper = upper.Batch();
    ranges.lower_bounds = lower_bounds;
    ranges.upper_bounds = upper_bounds;
    return ranges;
  }

  EncodedKeys lower, upper;
  std::vector<Bound> lower_bounds, upper_bounds;
};

inline void CheckValue(const AggregateOracle& oracle, const Aggregate& aggregate,
                       const std::vector<size_t>& entries, const DataValue& found,
                       const std::string& where) {
  const DataValue expected = RequireOk(oracle.Of(aggregate, entries));
  const bool added = aggregate.function == AggregateFunction::kSum ||
                     aggregate.function == AggregateFunction::kAvg;
  BOOST_TEST(SameValue(found, expected, added, 1000.0 * static_cast<double>(entries.size())),
             where << ": " << AggregateFunctionName(aggregate.function) << "(" << aggregate.column
                   << ") is " << Described(found) << ", expected " << Described(expected));
}

inline void CheckRanges(const SecondaryIndex& index, size_t count, std::mt19937_64& random) {
  const AggregateOracle oracle(index, kColumns);
  SomeKeyRanges some(oracle, index.kind(), count, random);
  const RangeBatch ranges = some.Batch();
  const std::vector<Aggregate> aggregates = AllAggregates();
  std::vector<ColumnValues> values;
  RequireOk(index.AggregateRanges(ranges, aggregates, &values));
  BOOST_REQUIRE(values.size() == aggregates.size());
  for (size_t r = 0; r < ranges.size(); ++r) {
    const std::vector<size_t> entries = oracle.Entries(ranges, r);
    for (size_t a = 0; a < aggregates.size(); ++a) {
      BOOST_REQUIRE(values[a].size() == ranges.size());
      CheckValue(oracle, aggregates[a], entries, values[a].value(r),
                 absl::StrFormat("range %d", r));
    }
  }
}

// Groups by the first `parts` parts, in pages if there is a limit.
inline void CheckGroups(const SecondaryIndex& index, size_t parts, uint64_t limit, size_t count,
                        std::mt19937_64& random) {
  const AggregateOracle oracle(index, kColumns);
  SomeKeyRanges some(oracle, index.kind(), count, random);
  RangeBatch ranges = some.Batch();
  const std::vector<Aggregate> aggregates = AllAggregates();
  QueryOptions options;
  options.limit = limit;
  std::vector<std::vector<std::vector<size_t>>> expected(ranges.size());  // entries of each group
  for (size_t r = 0; r < ranges.size(); ++r) {
    std::string last;
    for (const size_t i : oracle.Entries(ranges, r)) {
      const std::string leading = oracle.Leading(i, parts);
      if (expected[r].empty() || leading != last) expected[r].emplace_back();
      expected[r].back().push_back(i);
      last = leading;
    }
  }
  std::vector<size_t> next(ranges.size());
  std::vector<bool> ended(ranges.size());
  std::vector<std::string> cursors;
  for (bool more = true; more;) {
    AggregateGroupsResult groups;
    ranges.after = cursors;
    RequireOk(index.AggregateGroups(ranges, parts, aggregates, options, &groups));
    BOOST_REQUIRE(groups.size() == ranges.size());
    BOOST_REQUIRE(groups.keys.size() == parts);
    more = false;
    for (size_t r = 0; r < ranges.size(); ++r) {
      if (ended[r]) continue;
      for (size_t g = groups.offsets[r]; g < groups.offsets[r + 1]; ++g, ++next[r]) {
        BOOST_REQUIRE(next[r] < expected[r].size());
        const std::vector<size_t>& entries = expected[r][next[r]];
        std::string leading;
        for (const ColumnValues& part : groups.keys) leading += Described(part.value(g)) + ";";
        BOOST_TEST(leading == oracle.Leading(entries[0], parts));
        for (size_t a = 0; a < aggregates.size(); ++a) {
          CheckValue(oracle, aggregates[a], entries, groups.values[a].value(g), "group " + leading);
        }
      }
      ended[r] = groups.cursors[r].empty();
      BOOST_TEST(ended[r] == (next[r] == expected[r].size()));
      more |= !ended[r];
    }
    cursors = groups.cursors;
  }
}

inline void CheckAll(const SecondaryIndex& index, std::mt19937_64& random) {
  CheckRanges(index, 12, random);
  for (size_t parts = 1; parts <= index.codec().parts().size(); ++parts) {
    CheckGroups(index, parts, random() % 2 == 0 ? UINT64_MAX : 1 + random() % 7, 2, random);
  }
}

inline std::string Key(uint64_t i) {
  return absl::StrFormat("row%06d", i);
}

// Changes some rows: only values, only keys, both; deletes some and adds some.
inline void Change(TestDatabase& db, Rows& rows, uint64_t universe, size_t changes) {
  // Sometimes with few keys, which are mostly absent from the base: a part of the delta has several
  // entries of a key, and the next parts remove some of them.
  const uint64_t keys = rows.keys;
  if (rows.random() % 2 == 0) {
    rows.first = keys / 2 + rows.random() % 20;
    rows.keys = 1 + rows.random() % 20;
  }
  for (; changes > 0; --changes) {
    const std::string key = Key(rows.random() % universe);
    std::string value;
    const bool there = db.db()->Get({}, key, &value).ok();
    const std::vector<std::string> fields = absl::StrSplit(value, '|');
    const uint64_t what = rows.random() % 5;
    if (what == 0) {
      db.Delete(key);
    } else if (there && what == 1) {  // other values
      db.Put(key, absl::StrJoin(absl::MakeConstSpan(fields).first(4), "|") + rows.Values());
    } else if (there && what == 2) {  // other keys
      std::string changed = rows.Keys();
      for (size_t i = 4; i < fields.size(); ++i) changed += "|" + fields[i];
      db.Put(key, changed);
    } else {
      db.Put(key, rows.Any());
    }
  }
  rows.first = 0;
  rows.keys = keys;
}

// Specs of every kind of key.
inline const std::vector<std::string_view> kKeys = {
    "value.field('|',0):u32",
    "value.field('|',0):u64",
    "value.field('|',2):text",
    "value.field('|',0):u8,value.field('|',1):u16",                             // u32, of 3 bytes
    "value.field('|',1):i16,value.field('|',0):u16,value.field('|',3):i32",     // u64
    "value.field('|',1):u16,value.field('|',0):u16,value.field('|',3):u8",      // u64, of 5 bytes
    "value.field('|',2):text,value.field('|',1):u8,value.field('|',0):u32",     // bytes
    "value.field('|',1):f64,value.field('|',2):bytes,value.field('|',2):text",  // bytes
    "value.field('|',12):u8,value.field('|',11):u8,nulls=first",                // u32
    "value.field('|',12):i16,value.field('|',11):u16,nulls=last",               // u64
    "value.field('|',12):text,value.field('|',11):u32,nulls=first",             // bytes
    "value.field('|',12):text,value.field('|',11):f64,nulls=last",
    "value.field('|',11):u16,nulls=last",
};

}  // namespace cairn
