#pragma once

#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cairn/column.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {

inline OpenOptions ForTests() {
  OpenOptions options;
  options.calibration = Calibration::kNone;
  options.threads = 2;
  return options;
}

inline Strings Texts(const StringList& column) {
  Strings texts;
  for (const std::string_view text : column) texts.emplace_back(text);
  return texts;
}

// All entries of any index as "key=primary key", in index order.
inline Strings Entries(const SecondaryIndex& index) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &matches, options));
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  Strings entries;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    entries.push_back(*index.codec().Format(matches.keys, i) + "=" + std::string(primary_keys[i]));
  }
  return entries;
}

// Builds a sharded index over the current rows of a database, and opens it.
inline std::unique_ptr<SecondaryIndex> BuildInShards(TestDatabase& db, std::string_view spec,
                                                     uint32_t shards, uint32_t segments = 1,
                                                     const std::string& name = "sharded") {
  ShardedBuildOptions options;
  options.shards = shards;
  options.segments = segments;
  options.build.threads = 2;
  RequireOk(BuildSharded(*db.Source(), Spec(spec), db.Beside(name), options).status());
  return RequireOk(SecondaryIndex::Open(db.Beside(name), ForTests()));
}

// A sharded and an unsharded index of the same rows, which must have the same results.
class ShardedPair {
 public:
  ShardedPair(std::unique_ptr<SecondaryIndex> sharded, std::unique_ptr<SecondaryIndex> plain)
      : sharded_(std::move(sharded)), plain_(std::move(plain)) {}

  const SecondaryIndex& sharded() const { return *sharded_; }
  const SecondaryIndex& plain() const { return *plain_; }
  PhysicalType kind() const { return plain_->kind(); }

  void CheckPoints(KeyBatch keys) const;
  // Checks Count, and Scan in both orders with several limits, and page by page.
  void CheckRanges(const RangeBatch& ranges) const;
  // Checks Fetch from the database of both.
  void CheckFetch(const SnapshotSource& source, const RangeBatch& ranges) const;

 private:
  static Strings Found(const SecondaryIndex& index, const FindResult& matches) {
    StringList primary_keys;
    RequireOk(index.PrimaryKeys(matches, &primary_keys));
    return Texts(primary_keys);
  }
  static Strings Keys(const SecondaryIndex& index, const FindResult& matches) {
    Strings keys;
    for (size_t i = 0; i < matches.keys.size(); ++i) {
      keys.push_back(*index.codec().Format(matches.keys, i));
    }
    return keys;
  }
  void CheckSame(const FindResult& sharded, const FindResult& plain) const {
    BOOST_REQUIRE(sharded.offsets == plain.offsets);
    BOOST_REQUIRE(Found(*sharded_, sharded) == Found(*plain_, plain));
    BOOST_REQUIRE(Keys(*sharded_, sharded) == Keys(*plain_, plain));
    BOOST_REQUIRE_EQUAL(sharded.cursors.size(), plain.cursors.size());
    for (size_t i = 0; i < plain.cursors.size(); ++i) {
      BOOST_REQUIRE_EQUAL(sharded.cursors[i].empty(), plain.cursors[i].empty());
    }
  }

  const std::unique_ptr<SecondaryIndex> sharded_, plain_;
};

inline void ShardedPair::CheckPoints(KeyBatch keys) const {
  const size_t size = keys.size();
  const auto contained = std::make_unique<bool[]>(size), expected = std::make_unique<bool[]>(size);
  RequireOk(sharded_->Contains(keys, absl::MakeSpan(contained.get(), size)));
  RequireOk(plain_->Contains(keys, absl::MakeSpan(expected.get(), size)));
  BOOST_REQUIRE(std::equal(contained.get(), contained.get() + size, expected.get()));

  FindResult found, all;
  RequireOk(sharded_->Find(keys, &found));
  RequireOk(plain_->Find(keys, &all));
  CheckSame(found, all);

  for (const ResultOrder order : {ResultOrder::kCaller, ResultOrder::kKey}) {
    std::vector<GlobalRowId> rows(size);
    std::vector<uint32_t> query_of(size);
    Batch batch = Batch::FindFirst(keys, absl::MakeSpan(rows));
    batch.query_of = absl::MakeSpan(query_of);
    batch.options.result_order = order;
    RequireOk(sharded_->Execute(batch));
    std::vector<bool> answered(size);
    for (size_t i = 0; i < size; ++i) {
      const size_t query = query_of[i];
      BOOST_REQUIRE(query < size && !answered[query]);
      answered[query] = true;
      if (order == ResultOrder::kCaller) BOOST_REQUIRE_EQUAL(query, i);
      BOOST_REQUIRE_EQUAL(rows[i] == kNoGlobalRow, all.rows(query).empty());
      if (rows[i] == kNoGlobalRow) continue;
      BOOST_REQUIRE_EQUAL(rows[i], found.rows(query)[0]);
    }
  }
  std::vector<GlobalRowId> rows(size);
  RequireOk(sharded_->FindFirst(keys, absl::MakeSpan(rows)));
  for (size_t i = 0; i < size; ++i) {
    BOOST_REQUIRE(rows[i] == (found.rows(i).empty() ? kNoGlobalRow : found.rows(i)[0]));
  }
}

inline void ShardedPair::CheckRanges(const RangeBatch& ranges) const {
  const size_t size = ranges.size();
  std::vector<uint64_t> counts(size), expected(size);
  RequireOk(sharded_->Count(ranges, absl::MakeSpan(counts)));
  RequireOk(plain_->Count(ranges, absl::MakeSpan(expected)));
  BOOST_REQUIRE(counts == expected);
  for (const Order order : {Order::kAscending, Order::kDescending}) {
    for (const uint64_t limit : {UINT64_MAX, uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{50}}) {
      for (const bool with_keys : {false, true}) {
        QueryOptions options;
        options.order = order;
        options.limit = limit;
        options.with_keys = with_keys;
        FindResult found, all;
        RequireOk(sharded_->Scan(ranges, &found, options));
        RequireOk(plain_->Scan(ranges, &all, options));
        CheckSame(found, all);
        // Continues from the cursors of each, to the end.
        RangeBatch next = ranges, next_plain = ranges;
        for (int page = 0; page < 6 && limit != 0 && limit != UINT64_MAX; ++page) {
          const Strings after = found.cursors, after_plain = all.cursors;
          next.after = after;
          next_plain.after = after_plain;
          RequireOk(sharded_->Scan(next, &found, options));
          RequireOk(plain_->Scan(next_plain, &all, options));
          CheckSame(found, all);
        }
      }
    }
  }
}

inline void ShardedPair::CheckFetch(const SnapshotSource& source, const RangeBatch& ranges) const {
  for (const uint64_t limit : {UINT64_MAX, uint64_t{5}}) {
    QueryOptions options;
    options.limit = limit;
    FetchResult found, all;
    RequireOk(sharded_->Fetch(source, ranges, options, &found));
    RequireOk(plain_->Fetch(source, ranges, options, &all));
    BOOST_REQUIRE(found.offsets == all.offsets);
    BOOST_REQUIRE(Texts(found.primary_keys) == Texts(all.primary_keys));
    BOOST_REQUIRE(Texts(found.values) == Texts(all.values));
    BOOST_REQUIRE_EQUAL(found.stale, all.stale);
    BOOST_REQUIRE_EQUAL(found.shards.size(), found.row_ids.size());
  }
}

// Ranges of every kind between some keys.
struct RangeColumnsOf {
  EncodedKeys lower, upper;
  std::vector<Bound> lower_bounds, upper_bounds;

  RangeColumnsOf(const EncodedKeys& keys, size_t count, std::mt19937_64* random)
      : lower(keys.kind()), upper(keys.kind()) {
    const auto append = [&](size_t i, EncodedKeys* to) {
      if (keys.kind() == PhysicalType::kU32) to->AppendU32(keys.u32(i));
      if (keys.kind() == PhysicalType::kU64) to->AppendU64(keys.u64(i));
      if (keys.kind() == PhysicalType::kBytes) to->AppendBytes(keys.bytes(i));
    };
    const int uppers = keys.kind() == PhysicalType::kBytes ? 4 : 3;
    for (size_t i = 0; i < count && !keys.empty(); ++i) {
      append((*random)() % keys.size(), &lower);
      append((*random)() % keys.size(), &upper);
      lower_bounds.push_back(static_cast<Bound>((*random)() % 3));
      upper_bounds.push_back(static_cast<Bound>((*random)() % static_cast<uint64_t>(uppers)));
    }
  }
  RangeBatch Batch() {
    RangeBatch ranges = RangeBatch::HalfOpen(lower.Batch(), upper.Batch());
    ranges.lower_bounds = lower_bounds;
    ranges.upper_bounds = upper_bounds;
    return ranges;
  }
};

}  // namespace cairn
