#pragma once

// A base in memory with a DeltaWriter over it, and a model of the results of an index over the same
// rows.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/batch/strategy.h"
#include "engine/delta/delta_writer.h"
#include "engine/rows/row_table_writer.h"
#include "engine/version/versioned_search.h"
#include "index/query/physical_key.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {

// The sections of a row table in memory.
struct RowTableMemory : RowTableSink {
  absl::Status BeginSection(RowTableSection section) override {
    current = &sections[section];
    return absl::OkStatus();
  }
  absl::Status Append(std::string_view bytes) override {
    current->append(bytes);
    return absl::OkStatus();
  }
  template <typename T>
  absl::Span<const T> Elements(RowTableSection section) {
    const std::string& bytes = sections[section];
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  std::map<RowTableSection, std::string> sections;
  std::string* current = nullptr;
};

inline RowTable MakeRowTable(const std::vector<std::string>& primary_keys) {
  auto memory = std::make_shared<RowTableMemory>();
  RowTableWriter writer(1, memory.get());
  for (const std::string& key : primary_keys) RequireOk(writer.part(0).Add(key));
  RequireOk(writer.Finish());
  RowTable::Sections sections;
  sections.blocks = memory->sections[RowTableSection::kBlocks];
  sections.parts = memory->Elements<RowTablePart>(RowTableSection::kParts);
  sections.block_offsets = memory->Elements<uint64_t>(RowTableSection::kBlockOffsets);
  sections.separator_ends = memory->Elements<uint64_t>(RowTableSection::kSeparatorEnds);
  sections.separators = memory->sections[RowTableSection::kSeparators];
  return RequireOk(RowTable::Wrap(sections, "test.tbl", 1, memory));
}

// A key in the model, and in a batch.
template <typename Key>
using PhysicalOf = std::conditional_t<std::is_same_v<Key, std::string>, std::string_view, Key>;

// Rows: primary key -> secondary keys. Key is uint32_t, uint64_t or std::string.
template <typename Key>
using ModelRows = std::map<std::string, std::set<Key>>;

template <typename Key>
void AppendTo(const Key& key, EncodedKeys* keys) {
  if constexpr (std::is_same_v<Key, uint32_t>) {
    keys->AppendU32(key);
  } else if constexpr (std::is_same_v<Key, uint64_t>) {
    keys->AppendU64(key);
  } else {
    keys->AppendBytes(key);
  }
}

template <typename Key>
void AppendRow(const std::string& primary_key, const std::set<Key>& row_keys, RowUpdates* updates) {
  for (const Key& key : row_keys) AppendTo(key, &updates->keys);
  updates->EndRow(primary_key);
}

// A base of the model's rows.
template <typename Key>
SortedRun MakeBaseRun(const ModelRows<Key>& rows) {
  std::vector<std::pair<Key, RowId>> entries;
  RowId row = 0;
  for (const auto& [primary_key, row_keys] : rows) {
    for (const Key& key : row_keys) entries.emplace_back(key, row);
    ++row;
  }
  std::sort(entries.begin(), entries.end());
  std::vector<PhysicalOf<Key>> keys;
  std::vector<RowId> row_ids;
  for (const auto& [key, id] : entries) {
    keys.push_back(key);
    row_ids.push_back(id);
  }
  return RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids));
}

template <typename Key>
std::unique_ptr<DeltaWriter> MakeWriter(const ModelRows<Key>& rows) {
  std::vector<std::string> primary_keys;
  for (const auto& row : rows) primary_keys.push_back(row.first);
  return RequireOk(DeltaWriter::Create(MakeBaseRun(rows), MakeRowTable(primary_keys), 2));
}

// Executes queries of the base on an ordered index; for ResultOrder::kKey, queries are sorted
// first.
class IndexSearch {
 public:
  explicit IndexSearch(const SortedRun& run) {
    index_ = RequireOk(MakeOrderedIndex("cpu:auto", run));
  }

  absl::Status operator()(const Batch& batch) const {
    if (batch.options.result_order == ResultOrder::kCaller) return index_->Execute(batch);
    StrategyOptions sorts;
    sorts.strategy = Strategy::kSortBased;
    return Execute(*index_, batch, sorts, {}, &scratch_);
  }

 private:
  std::unique_ptr<OrderedIndex> index_;
  mutable StrategyScratchPool scratch_;
};

// Executes all queries on a version, and compares with the model's rows.
template <typename Key>
class VersionCheck {
 public:
  using Physical = PhysicalOf<Key>;
  using Entry = std::pair<Key, std::string>;  // key, primary key

  // `base` must execute queries of the base during the lifetime of the check.
  VersionCheck(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
               const ModelRows<Key>& rows)
      : delta_(delta), base_(base) {
    for (const auto& [primary_key, row_keys] : rows) {
      for (const Key& key : row_keys) entries_.emplace_back(key, primary_key);
      live_rows_ += row_keys.empty() ? 0 : 1;
    }
    std::sort(entries_.begin(), entries_.end());
  }

  const std::vector<Entry>& entries() const { return entries_; }

  // Checks everything for these keys and for ranges between them.
  void CheckAll(const std::vector<Key>& keys) {
    CheckStats();
    CheckPoints(keys, ResultOrder::kCaller);
    CheckPoints(keys, ResultOrder::kKey);
    CheckRanges(keys);
    CheckWhole();
  }

  void CheckStats() {
    const DeltaStats stats = delta_.Stats();
    BOOST_TEST(stats.entries == entries_.size());
    BOOST_TEST(stats.bytes >= stats.added_entries * sizeof(RowId));
  }

  void CheckPoints(const std::vector<Key>& keys, ResultOrder order) {
    const std::vector<Physical> asked(keys.begin(), keys.end());
    const KeyBatch batch(asked);
    const size_t n = keys.size();
    std::vector<uint32_t> query_of(n);
    QueryOptions options;
    options.result_order = order;
    std::vector<RowId> first(n, 0xDEAD);
    auto found = std::make_unique<bool[]>(n + 1);
    for (Batch points : {Batch::FindFirst(batch, absl::MakeSpan(first), options),
                         Batch::Contains(batch, absl::Span<bool>(found.get(), n), options),
                         Batch::Find(batch, &matches_, options)}) {
      if (order == ResultOrder::kKey) points.query_of = absl::MakeSpan(query_of);
      Ask(points);
    }
    Expect(matches_.size() == n && matches_.offsets[0] == 0, "the size of Find", n);
    std::vector<RowId> first_rows;
    for (RowId row : first) {
      if (row != kNoRow) first_rows.push_back(row);
    }
    const std::vector<std::string> first_keys = PrimaryKeys(first_rows);
    const std::vector<std::string> all_keys = PrimaryKeys(matches_.row_ids);
    size_t next_first = 0;
    for (size_t i = 0; i < n; ++i) {
      const size_t query = order == ResultOrder::kKey ? query_of[i] : i;
      const auto [from, to] = EqualRange(keys[query]);
      Expect(found[i] == (from < to), "Contains", i);
      Expect((first[i] != kNoRow) == (from < to), "whether FindFirst finds", i);
      if (from < to) Expect(first_keys[next_first++] == entries_[from].second, "FindFirst", i);
      Expect(matches_[i].size() == to - from, "the number that Find finds", i);
      for (size_t k = from; k < to; ++k) {
        Expect(all_keys[matches_.offsets[i] + k - from] == entries_[k].second, "Find", i);
      }
    }
  }

  void CheckRanges(const std::vector<Key>& keys) {
    constexpr Bound kBounds[] = {Bound::kInclusive, Bound::kExclusive, Bound::kOpen,
                                 Bound::kPrefix};
    auto random = TestRandom(keys.size());
    std::vector<Physical> lower, upper;
    std::vector<Bound> lower_bounds, upper_bounds;
    std::vector<std::pair<size_t, size_t>> expected;
    for (size_t i = 0; i < 200; ++i) {
      const Key& from = keys[random() % keys.size()];
      const Key& to = i % 5 == 0 ? from : keys[random() % keys.size()];
      lower.push_back(from);
      upper.push_back(to);
      lower_bounds.push_back(kBounds[random() % 3]);
      upper_bounds.push_back(kBounds[random() % (std::is_same_v<Key, std::string> ? 4 : 3)]);
      if (upper_bounds.back() == Bound::kPrefix) lower_bounds.back() = Bound::kInclusive;
      expected.push_back(Positions(from, lower_bounds.back(), to, upper_bounds.back()));
    }
    RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
    ranges.lower_bounds = lower_bounds;
    ranges.upper_bounds = upper_bounds;

    std::vector<uint64_t> counts(ranges.size());
    Ask(Batch::Count(ranges, absl::MakeSpan(counts)));
    for (size_t i = 0; i < counts.size(); ++i) {
      Expect(counts[i] == expected[i].second - expected[i].first, "Count", i);
    }
    for (Order order : {Order::kAscending, Order::kDescending}) {
      for (uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{7}, UINT64_MAX}) {
        for (bool with_keys : {false, true}) {
          QueryOptions options;
          options.order = order;
          options.limit = limit;
          options.with_keys = with_keys;
          Ask(Batch::Scan(ranges, &matches_, options));
          for (size_t i = 0; i < counts.size(); ++i) CheckScanned(i, expected[i], options);
        }
      }
    }
  }

  // Checks a scan of everything, in both orders, page by page.
  void CheckWhole() {
    for (Order order : {Order::kAscending, Order::kDescending}) {
      RangeBatch everything = RangeBatch::Everything(kKindOf<Physical>);
      QueryOptions options;
      options.order = order;
      options.with_keys = true;
      options.limit = 1 + entries_.size() / 4;
      std::vector<Entry> found;
      std::string after;
      do {
        everything.after = absl::MakeConstSpan(&after, 1);
        Ask(Batch::Scan(everything, &matches_, options));
        AppendFound(&found);
        after = matches_.cursors[0];
      } while (!after.empty());
      if (order == Order::kDescending) std::reverse(found.begin(), found.end());
      Expect(found == entries_, "the pages of a scan", 0);
    }
  }

  // Reads one page of all entries. Appends the entries found, and returns the cursor after them.
  std::string Page(const std::string& after, Order order, uint64_t limit,
                   std::vector<Entry>* found) {
    RangeBatch everything = RangeBatch::Everything(kKindOf<Physical>);
    everything.after = absl::MakeConstSpan(&after, 1);
    QueryOptions options;
    options.order = order;
    options.with_keys = true;
    options.limit = limit;
    Ask(Batch::Scan(everything, &matches_, options));
    AppendFound(found);
    return matches_.cursors[0];
  }

 private:
  void Ask(const Batch& batch) const {
    Require(AnswerVersion(delta_, base_, batch, {.threads = 2, .min_slice = 64}));
  }
  static void Require(const absl::Status& status) { RequireOk(status); }
  static void Expect(bool ok, const char* what, size_t i) {
    if (!ok) BOOST_FAIL(what << " is wrong, query " << i);
  }

  std::vector<std::string> PrimaryKeys(absl::Span<const RowId> rows) const {
    StringList column;
    Require(delta_.PrimaryKeys(rows, &column));
    std::vector<std::string> keys;
    for (size_t i = 0; i < column.size(); ++i) keys.emplace_back(column[i]);
    return keys;
  }

  void AppendFound(std::vector<Entry>* found) const {
    const std::vector<std::string> rows = PrimaryKeys(matches_.row_ids);
    for (size_t i = 0; i < rows.size(); ++i) {
      found->emplace_back(Key(KeyAt<Physical>(matches_.keys, i)), rows[i]);
    }
  }

  void CheckScanned(size_t i, std::pair<size_t, size_t> range, const QueryOptions& options) {
    const size_t size = std::min<uint64_t>(range.second - range.first, options.limit);
    Expect(matches_[i].size() == size, "the number that Scan finds", i);
    const std::vector<std::string> rows = PrimaryKeys(matches_[i]);
    for (size_t k = 0; k < size; ++k) {
      const Entry& entry = options.order == Order::kAscending ? entries_[range.first + k]
                                                              : entries_[range.second - 1 - k];
      Expect(rows[k] == entry.second, "Scan", i);
      if (options.with_keys) {
        const size_t j = matches_.offsets[i] + k;
        Expect(KeyAt<Physical>(matches_.keys, j) == Physical(entry.first), "a scan's key", i);
      }
    }
    const bool pages = options.limit != UINT64_MAX;
    Expect(matches_.cursors.size() == (pages ? matches_.size() : 0), "the number of cursors", i);
    if (!pages) return;
    const bool goes_on = options.limit > 0 && range.second - range.first > options.limit;
    Expect(matches_.cursors[i].empty() == !goes_on, "whether a scan goes on", i);
  }

  std::pair<size_t, size_t> EqualRange(const Key& key) const {
    const auto less = [](const Entry& entry, const Key& k) { return entry.first < k; };
    const auto greater = [](const Key& k, const Entry& entry) { return k < entry.first; };
    const auto from = std::lower_bound(entries_.begin(), entries_.end(), key, less);
    const auto to = std::upper_bound(from, entries_.end(), key, greater);
    return {from - entries_.begin(), to - entries_.begin()};
  }

  std::pair<size_t, size_t> Positions(const Key& lower, Bound lower_bound, const Key& upper,
                                      Bound upper_bound) const {
    size_t begin = 0, end = entries_.size();
    if (lower_bound == Bound::kInclusive) begin = EqualRange(lower).first;
    if (lower_bound == Bound::kExclusive) begin = EqualRange(lower).second;
    if (upper_bound == Bound::kInclusive) end = EqualRange(upper).second;
    if (upper_bound == Bound::kExclusive) end = EqualRange(upper).first;
    if constexpr (std::is_same_v<Key, std::string>) {
      if (upper_bound == Bound::kPrefix) {
        end = std::partition_point(
                  entries_.begin() + static_cast<ptrdiff_t>(begin), entries_.end(),
                  [&](const Entry& e) { return e.first.compare(0, lower.size(), lower) == 0; }) -
              entries_.begin();
      }
    }
    return {begin, std::max(begin, end)};
  }

  const Delta& delta_;
  const absl::FunctionRef<absl::Status(const Batch&)> base_;
  std::vector<Entry> entries_;
  uint64_t live_rows_ = 0;
  FindResult matches_;
};

}  // namespace cairn
