#include "test/ordered_index_oracle.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <sstream>
#include <utility>

#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
namespace oracle {

template <typename Key>
std::string Print(const Key& key) {
  std::ostringstream out;
  if constexpr (std::is_integral_v<Key>) {
    out << key;
  } else {
    out << key.size() << " bytes";
    for (size_t i = 0; i < std::min<size_t>(key.size(), 16); ++i) {
      out << (i == 0 ? ": " : " ") << std::hex << static_cast<int>(static_cast<uint8_t>(key[i]));
    }
  }
  return out.str();
}

// Compares an operation's result with the expected one; names the query on a difference.
#define CAIRN_ORACLE_CHECK(ok, what, i)                                                     \
  do {                                                                                      \
    if (!(ok)) BOOST_FAIL(index.description() << " on " << data.name << ": " << what << i); \
  } while (false)

template <typename Key>
class Oracle {
 public:
  Oracle(const OrderedIndex& index, const OracleData<Key>& data)
      : index_(index), data_(data), queries_(Views(data.queries)) {}

  void CheckAll() {
    for (size_t batch : {size_t{0}, size_t{1}, size_t{2}, size_t{31}, size_t{32}, size_t{33},
                         size_t{255}, size_t{257}, queries_.size()}) {
      CheckPoints(KeysUpTo(batch));
    }
    CheckRanges();
    CheckRefusals();
  }

  void CheckPoints(KeyBatch batch) {
    const OrderedIndex& index = index_;
    const OracleData<Key>& data = data_;
    const size_t n = batch.size();
    std::vector<Position> lower(n, 0xDEAD), upper(n, 0xDEAD), begin(n, 0xDEAD), end(n, 0xDEAD);
    std::vector<RowId> first(n, 0xDEAD);
    auto found = std::make_unique<bool[]>(n + 1);
    RequireOk(index.Execute(Batch::LowerBound(batch, absl::MakeSpan(lower))));
    RequireOk(index.Execute(Batch::UpperBound(batch, absl::MakeSpan(upper))));
    RequireOk(index.Execute(Batch::FindFirst(batch, absl::MakeSpan(first))));
    RequireOk(index.Execute(Batch::Contains(batch, absl::Span<bool>(found.get(), n))));
    RequireOk(index.Execute(Batch::EqualRange(batch, absl::MakeSpan(begin), absl::MakeSpan(end))));
    RequireOk(index.Execute(Batch::Find(batch, &matches_)));
    BOOST_REQUIRE(matches_.size() == n && matches_.offsets[0] == 0);
    for (size_t i = 0; i < n; ++i) {
      const auto [from, to] = EqualRange(i);
      const auto what = [&] { return Print(data.queries[i]) + ", query "; };
      CAIRN_ORACLE_CHECK(lower[i] == from, "LowerBound of " << what(), i);
      CAIRN_ORACLE_CHECK(upper[i] == to, "UpperBound of " << what(), i);
      CAIRN_ORACLE_CHECK(begin[i] == from && end[i] == to, "EqualRange of " << what(), i);
      CAIRN_ORACLE_CHECK(first[i] == (from < to ? data.row_ids[from] : kNoRow),
                         "FindFirst of " << what(), i);
      CAIRN_ORACLE_CHECK(found[i] == (from < to), "Contains of " << what(), i);
      CAIRN_ORACLE_CHECK(matches_[i] == absl::MakeConstSpan(data.row_ids).subspan(from, to - from),
                         "Find of " << what(), i);
    }
  }

 private:
  using View = Physical<Key>;

  KeyBatch KeysUpTo(size_t count) const {
    return KeyBatch(queries_).Slice(0, std::min(count, queries_.size()));
  }

  std::pair<size_t, size_t> EqualRange(size_t query) const {
    const auto range = std::equal_range(data_.keys.begin(), data_.keys.end(), data_.queries[query]);
    return {range.first - data_.keys.begin(), range.second - data_.keys.begin()};
  }

  // The positions of one range by the definitions of Bound, entry by entry if necessary.
  std::pair<size_t, size_t> PositionsOf(size_t lower, Bound lower_bound, size_t upper,
                                        Bound upper_bound) const {
    const auto [lower_from, lower_to] = EqualRange(lower);
    const auto [upper_from, upper_to] = EqualRange(upper);
    const size_t begin = lower_bound == Bound::kOpen        ? 0
                         : lower_bound == Bound::kInclusive ? lower_from
                                                            : lower_to;
    size_t end = data_.keys.size();
    if (upper_bound == Bound::kInclusive) end = upper_to;
    if (upper_bound == Bound::kExclusive) end = upper_from;
    if constexpr (!std::is_integral_v<Key>) {
      if (upper_bound == Bound::kPrefix) {
        const std::string& prefix = data_.queries[lower];
        end = std::partition_point(data_.keys.begin() + lower_from, data_.keys.end(),
                                   [&](const std::string& key) {
                                     return key.compare(0, prefix.size(), prefix) == 0;
                                   }) -
              data_.keys.begin();
      }
    }
    return {begin, std::max(begin, end)};
  }

  void CheckRanges() {
    auto random = TestRandom(data_.keys.size() + 17);
    const size_t n = std::min(queries_.size(), FewerSanitized(600, 3, 10));
    const bool strings = !std::is_integral_v<Key>;
    // Uniform bounds of every kind, then mixed ones; the upper keys are the lower ones or others.
    for (int lower_bound = 0; lower_bound < 3; ++lower_bound) {
      for (int upper_bound = 0; upper_bound < (strings ? 4 : 3); ++upper_bound) {
        for (bool same : {false, true}) {
          CheckRangesWith(n, same, static_cast<Bound>(lower_bound), static_cast<Bound>(upper_bound),
                          {}, {});
        }
      }
    }
    std::vector<Bound> lower_bounds(n), upper_bounds(n);
    for (size_t i = 0; i < n; ++i) {
      lower_bounds[i] = static_cast<Bound>(random() % 3);
      upper_bounds[i] = static_cast<Bound>(random() % (strings ? 4 : 3));
    }
    CheckRangesWith(n, false, {}, {}, lower_bounds, upper_bounds);
    CheckRangesWith(n, true, {}, {}, lower_bounds, upper_bounds);
  }

  void CheckRangesWith(size_t n, bool same_keys, Bound lower_bound, Bound upper_bound,
                       const std::vector<Bound>& lower_bounds,
                       const std::vector<Bound>& upper_bounds) {
    const OrderedIndex& index = index_;
    const OracleData<Key>& data = data_;
    std::vector<View> upper_keys(n);
    for (size_t i = 0; i < n; ++i) upper_keys[i] = queries_[n - 1 - i];
    RangeBatch ranges;
    ranges.lower = KeysUpTo(n);
    ranges.upper = same_keys ? ranges.lower : KeyBatch(upper_keys);
    ranges.lower_bound = lower_bound;
    ranges.upper_bound = upper_bound;
    ranges.lower_bounds = lower_bounds;
    ranges.upper_bounds = upper_bounds;
    std::vector<Position> begin(n), end(n);
    std::vector<uint64_t> counts(n);
    RequireOk(index.Execute(Batch::Positions(ranges, absl::MakeSpan(begin), absl::MakeSpan(end))));
    RequireOk(index.Execute(Batch::Count(ranges, absl::MakeSpan(counts))));
    std::vector<std::pair<size_t, size_t>> expected(n);
    uint64_t total = 0;
    for (size_t i = 0; i < n; ++i) {
      expected[i] = PositionsOf(i, ranges.lower_bound_of(i), same_keys ? i : n - 1 - i,
                                ranges.upper_bound_of(i));
      const auto [from, to] = expected[i];
      CAIRN_ORACLE_CHECK(begin[i] == from, "begin of range ", i);
      CAIRN_ORACLE_CHECK(end[i] == to, "end of range ", i);
      CAIRN_ORACLE_CHECK(counts[i] == to - from, "Count of range ", i);
      total += to - from;
    }
    for (Order order : {Order::kAscending, Order::kDescending}) {
      for (uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{5}, UINT64_MAX}) {
        if (limit == UINT64_MAX && total > 100000) continue;
        CheckScan(ranges, {order, limit, limit == 5}, expected);
      }
    }
  }

  void CheckScan(const RangeBatch& ranges, const QueryOptions& options,
                 const std::vector<std::pair<size_t, size_t>>& expected) {
    const OrderedIndex& index = index_;
    const OracleData<Key>& data = data_;
    RequireOk(index.Execute(Batch::Scan(ranges, &matches_, options)));
    BOOST_REQUIRE(matches_.size() == expected.size());
    BOOST_REQUIRE(matches_.keys.size() == (options.with_keys ? matches_.row_ids.size() : 0));
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto [from, to] = expected[i];
      const size_t count = std::min<uint64_t>(options.limit, to - from);
      CAIRN_ORACLE_CHECK(matches_[i].size() == count, "rows of Scan's range ", i);
      for (size_t k = 0; k < count; ++k) {
        const size_t p = options.order == Order::kAscending ? from + k : to - 1 - k;
        CAIRN_ORACLE_CHECK(matches_[i][k] == data.row_ids[p], "a row of Scan's range ", i);
        if (!options.with_keys) continue;
        const size_t at = matches_.offsets[i] + k;
        bool equal;
        if constexpr (std::is_same_v<Key, uint32_t>) {
          equal = matches_.keys.u32(at) == data.keys[p];
        } else if constexpr (std::is_same_v<Key, uint64_t>) {
          equal = matches_.keys.u64(at) == data.keys[p];
        } else {
          equal = matches_.keys.bytes(at) == data.keys[p];
        }
        CAIRN_ORACLE_CHECK(equal, "a key of Scan's range ", i);
      }
    }
  }

  void CheckRefusals() {
    const uint32_t u32[1] = {1};
    const std::string_view bytes[1] = {"1"};
    const bool strings = !std::is_integral_v<Key>;
    const KeyBatch wrong = strings ? KeyBatch(u32) : KeyBatch(bytes);
    Position position[1];
    RowId row[1];
    bool found[1];
    uint64_t count[1];
    const auto refused = [](const absl::Status& s) { return absl::IsInvalidArgument(s); };
    BOOST_TEST(refused(index_.Execute(Batch::LowerBound(wrong, position))));
    BOOST_TEST(refused(index_.Execute(Batch::UpperBound(wrong, position))));
    BOOST_TEST(refused(index_.Execute(Batch::EqualRange(wrong, position, position))));
    BOOST_TEST(refused(index_.Execute(Batch::FindFirst(wrong, row))));
    BOOST_TEST(refused(index_.Execute(Batch::Contains(wrong, found))));
    BOOST_TEST(refused(index_.Execute(Batch::Find(wrong, &matches_))));
    BOOST_TEST(refused(index_.Execute(Batch::Count(RangeBatch::Equal(wrong), count))));
    BOOST_TEST(refused(index_.Execute(Batch::Scan(RangeBatch::Equal(wrong), &matches_))));
    BOOST_TEST(
        refused(index_.Execute(Batch::Positions(RangeBatch::Equal(wrong), position, position))));
    const KeyBatch one = KeysUpTo(1);
    BOOST_TEST(refused(index_.Execute(Batch::LowerBound(one, {}))));
    BOOST_TEST(refused(index_.Execute(Batch::UpperBound(one, {}))));
    BOOST_TEST(refused(index_.Execute(Batch::EqualRange(one, position, {}))));
    BOOST_TEST(refused(index_.Execute(Batch::Find(one, nullptr))));
    BOOST_TEST(refused(index_.Execute(Batch::FindFirst(one, absl::Span<RowId>()))));
    BOOST_TEST(refused(index_.Execute(Batch::Contains(one, {}))));
    BOOST_TEST(refused(index_.Execute(Batch::Count(RangeBatch::Equal(one), {}))));
    BOOST_TEST(refused(index_.Execute(Batch::Positions(RangeBatch::Equal(one), position, {}))));
    BOOST_TEST(refused(index_.Execute(Batch::Count(RangeBatch::HalfOpen(one, {}), count))));
    RangeBatch ranges = RangeBatch::Equal(one);
    ranges.lower_bound = Bound::kPrefix;
    BOOST_TEST(refused(index_.Execute(Batch::Count(ranges, count))));
    if (!strings) BOOST_TEST(refused(index_.Execute(Batch::Count(RangeBatch::Prefix(one), count))));
    const std::vector<Bound> two_bounds(2, Bound::kInclusive);
    ranges = RangeBatch::Equal(one);
    ranges.upper_bounds = two_bounds;
    BOOST_TEST(refused(index_.Execute(Batch::Count(ranges, count))));
    BOOST_TEST(index_.Execute(Batch::LowerBound(wrong.Slice(0, 0), {}))
                   .ok());  // an empty batch of any kind
    BOOST_TEST(index_.Execute(Batch::Find(KeyBatch(), &matches_)).ok());
    BOOST_TEST(matches_.size() == 0u);
  }

  const OrderedIndex& index_;
  const OracleData<Key>& data_;
  const std::vector<View> queries_;
  FindResult matches_;  // reused, as by callers
};

#undef CAIRN_ORACLE_CHECK

}  // namespace oracle

template <typename Key>
SortedRun OracleRun(const OracleData<Key>& data) {
  const auto keys = oracle::Views(data.keys);
  auto run = SortedRun::FromSorted(absl::MakeConstSpan(keys), data.row_ids);
  BOOST_REQUIRE_MESSAGE(run.ok(), data.name << ": " << run.status());
  return *std::move(run);
}

template <typename Key>
void CheckAgainstOracle(const OrderedIndex& index, const OracleData<Key>& data) {
  BOOST_TEST_MESSAGE(index.description() << " on " << data.name);
  oracle::Oracle<Key>(index, data).CheckAll();
}

template <typename Key>
void CheckPointsAgainstOracle(const OrderedIndex& index, const OracleData<Key>& data, size_t most) {
  BOOST_TEST_MESSAGE(index.description() << " on " << data.name);
  const auto queries = oracle::Views(data.queries);
  oracle::Oracle<Key>(index, data)
      .CheckPoints(KeyBatch(queries).Slice(0, std::min(most, queries.size())));
}

#define CAIRN_INSTANTIATE_ORACLE(Key)                                            \
  template SortedRun OracleRun(const OracleData<Key>&);                          \
  template void CheckAgainstOracle(const OrderedIndex&, const OracleData<Key>&); \
  template void CheckPointsAgainstOracle(const OrderedIndex&, const OracleData<Key>&, size_t);
CAIRN_INSTANTIATE_ORACLE(uint32_t)
CAIRN_INSTANTIATE_ORACLE(uint64_t)
CAIRN_INSTANTIATE_ORACLE(std::string)
#undef CAIRN_INSTANTIATE_ORACLE

}  // namespace cairn
