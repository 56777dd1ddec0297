#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

// Queries and results of IndexedDB::Lookup and LookupRows.

namespace rocksdb {
class Snapshot;
class Transaction;
}  // namespace rocksdb

namespace cairn {

// The value of one key part: a number, text or bytes, or null. Conversions are implicit, so that
// calls can use literals. Does not own bytes: text must live until the call that uses it returns.
class PartValue {
 public:
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  PartValue(T number) {  // NOLINT
    static_assert(!std::is_same_v<T, bool> && !std::is_same_v<T, char>,
                  "a key's part is a number or text");
    if constexpr (std::is_floating_point_v<T>) {
      value_ = static_cast<double>(number);
    } else if constexpr (std::is_signed_v<T>) {
      value_ = static_cast<int64_t>(number);
    } else {
      value_ = static_cast<uint64_t>(number);
    }
  }
  PartValue(std::string_view text) : value_(text) {}                      // NOLINT
  PartValue(const std::string& text) : value_(std::string_view(text)) {}  // NOLINT
  PartValue(const char* text) : value_(std::string_view(text)) {}         // NOLINT
  PartValue(std::nullptr_t) {}                                            // NOLINT: null
  PartValue(const DataValue& value) : value_(value) {}                    // NOLINT

  // Returns the value. Text refers to the memory that was passed.
  const DataValue& value() const { return value_; }

 private:
  DataValue value_;
};

// A secondary key, by the values of its parts: 42, "Lisbon", or {"PT", 42} for an index with two
// parts. The codec of the index encodes the values; values of another type are an error.
class LogicalKey {
 public:
  template <typename T, std::enable_if_t<std::is_constructible_v<PartValue, const T&>, int> = 0>
  LogicalKey(const T& value) : first_(PartValue(value).value()) {}  // NOLINT
  LogicalKey(std::initializer_list<PartValue> parts)
      : LogicalKey(parts.begin(), parts.end(), [](const PartValue& part) { return part.value(); }) {
  }
  // For keys whose number of parts is known only at run time.
  static LogicalKey OfParts(absl::Span<const DataValue> parts) {
    return LogicalKey(parts.begin(), parts.end(), [](const DataValue& part) { return part; });
  }

  // Returns one value per part, valid as long as this object.
  absl::Span<const DataValue> parts() const {
    return size_ == 1 ? absl::MakeConstSpan(&first_, 1) : absl::MakeConstSpan(more_);
  }

 private:
  template <typename Iterator, typename ValueOf>
  LogicalKey(Iterator begin, Iterator end, const ValueOf& value_of)
      : size_(static_cast<size_t>(end - begin)) {
    if (size_ == 1) {
      first_ = value_of(*begin);
    } else {
      for (; begin != end; ++begin) more_.push_back(value_of(*begin));
    }
  }

  size_t size_ = 1;
  DataValue first_;              // a key with one part is stored here, without allocations
  std::vector<DataValue> more_;  // all parts of a key with several
};

// The query of a lookup: a batch of keys, or one range of keys. Implicitly constructible from a
// key, from keys in braces and from containers of values:
//
//   db->Lookup("age", 42);
//   db->Lookup("city", {"Lisbon", "Oslo"});
//   db->Lookup("place", {{"PT", "Lisbon"}, {"NO", "Oslo"}});   // an index with two parts
//   db->Lookup("city", std::vector<std::string>(...));
//   db->Lookup("age", KeyQuery::Between(18, 65));
//   db->Lookup("place", KeyQuery::Prefix("PT"));               // {"PT", anything}
//   db->Lookup("city", KeyQuery::BytePrefix("Lis"), options);  // with options.limit, in pages
//
// A batch is much faster than one lookup per key. Does not own bytes, like PartValue. Keys of a
// batch must have a value for each part of the index. An end of a range may have fewer values; it
// then represents all keys that start with these values, which are all inside or all outside the
// range.
class KeyQuery {
 public:
  enum class Kind : uint8_t { kKeys, kPrefix, kBytePrefix, kRange };

  KeyQuery() = default;                                                               // no keys
  KeyQuery(std::initializer_list<LogicalKey> keys) : keys_(keys) {}                   // NOLINT
  KeyQuery(const std::vector<LogicalKey>& keys) : keys_(keys.begin(), keys.end()) {}  // NOLINT
  KeyQuery(std::vector<LogicalKey>&& keys)                                            // NOLINT
      : keys_(std::make_move_iterator(keys.begin()), std::make_move_iterator(keys.end())) {}
  template <typename T, std::enable_if_t<std::is_constructible_v<PartValue, const T&>, int> = 0>
  KeyQuery(const T& key) : keys_(1, LogicalKey(key)) {}  // NOLINT
  template <typename Container,
            std::enable_if_t<
                !std::is_constructible_v<PartValue, const Container&> &&
                    std::is_constructible_v<PartValue, const typename Container::value_type&>,
                int> = 0>
  KeyQuery(const Container& keys) : keys_(keys.begin(), keys.end()) {}  // NOLINT

  // Matches keys of several parts whose first parts equal these values: Prefix("PT") finds {"PT",
  // "Lisbon"}, but not {"PTX", "Lisbon"}. The lookup returns InvalidArgument if these are all parts
  // of the key and the last one is text or bytes; use the key itself or BytePrefix.
  static KeyQuery Prefix(LogicalKey parts) { return KeyQuery(Kind::kPrefix, std::move(parts)); }
  // Matches keys whose first parts equal these values, except that the last value, text or bytes,
  // is a prefix: BytePrefix("Lis") finds "Lisbon", and BytePrefix({"PT", "Lis"}) finds {"PT",
  // "Lisbon"}. BytePrefix("PT") also finds {"PTX", "Lisbon"}.
  static KeyQuery BytePrefix(LogicalKey parts) {
    return KeyQuery(Kind::kBytePrefix, std::move(parts));
  }
  // Matches keys in [lower, upper). Empty if `lower` is above `upper`.
  static KeyQuery Range(LogicalKey lower, LogicalKey upper) {
    return KeyQuery(std::move(lower), Bound::kInclusive, std::move(upper), Bound::kExclusive);
  }
  // Matches keys in [lower, upper], like BETWEEN in SQL.
  static KeyQuery Between(LogicalKey lower, LogicalKey upper) {
    return KeyQuery(std::move(lower), Bound::kInclusive, std::move(upper), Bound::kInclusive);
  }
  // Match keys that are at least, greater than, at most or less than a key.
  static KeyQuery AtLeast(LogicalKey lower) {
    return KeyQuery(std::move(lower), Bound::kInclusive, LogicalKey({}), Bound::kOpen);
  }
  static KeyQuery GreaterThan(LogicalKey lower) {
    return KeyQuery(std::move(lower), Bound::kExclusive, LogicalKey({}), Bound::kOpen);
  }
  static KeyQuery AtMost(LogicalKey upper) {
    return KeyQuery(LogicalKey({}), Bound::kOpen, std::move(upper), Bound::kInclusive);
  }
  static KeyQuery LessThan(LogicalKey upper) {
    return KeyQuery(LogicalKey({}), Bound::kOpen, std::move(upper), Bound::kExclusive);
  }
  // Matches every key.
  static KeyQuery Everything() {
    return KeyQuery(LogicalKey({}), Bound::kOpen, LogicalKey({}), Bound::kOpen);
  }

  Kind kind() const { return kind_; }
  // kKeys: the batch. kPrefix, kBytePrefix: one key. kRange: the lower and the upper end; an open
  // end is ignored.
  absl::Span<const LogicalKey> keys() const { return keys_; }
  // kRange: kInclusive, kExclusive or kOpen.
  Bound lower_bound() const { return lower_bound_; }
  Bound upper_bound() const { return upper_bound_; }
  // Returns the number of keys of a batch; otherwise 1.
  size_t size() const { return kind_ == Kind::kKeys ? keys_.size() : 1; }

 private:
  KeyQuery(Kind kind, LogicalKey key) : kind_(kind) { keys_.push_back(std::move(key)); }
  KeyQuery(LogicalKey lower, Bound lower_bound, LogicalKey upper, Bound upper_bound)
      : kind_(Kind::kRange), lower_bound_(lower_bound), upper_bound_(upper_bound) {
    keys_.push_back(std::move(lower));
    keys_.push_back(std::move(upper));
  }

  Kind kind_ = Kind::kKeys;
  Bound lower_bound_ = Bound::kInclusive;
  Bound upper_bound_ = Bound::kInclusive;
  absl::InlinedVector<LogicalKey, 2> keys_;  // the query of one key or range allocates nothing
};

// Options of Lookup and LookupRows.
struct LookupOptions {
  // The maximum number of rows for each key of a batch, or for the range. A row with several keys
  // in the range counts once, over all pages, at the first of them. 0: no rows and no cursor.
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  Order order = Order::kAscending;
  // The LookupResult::cursor of an earlier lookup that reached its limit, in the same index and
  // order, and for the same single key, prefix or range; the result continues after it. Empty:
  // start at the beginning. InvalidArgument for a batch of several keys and for any other cursor.
  // A cursor stays valid while the database changes and after it is reopened. If a row with several
  // keys changes between two pages, it may be returned twice or not at all.
  //
  //   do {
  //     rows = db->LookupRows(index, query, page);
  //     ...
  //     page.after = rows->cursor();
  //   } while (!page.after.empty());
  std::string after = {};
  // Included columns (IndexSpec::include) that Lookup returns for each row, by name, without
  // reading the database: LookupResult::columns. InvalidArgument, listing the included columns, for
  // an unknown name, and for any name in LookupRows.
  std::vector<std::string> columns = {};
  // End the lookup before it is complete: see QueryOptions. They also limit the wait for writes
  // that the index has not applied yet.
  const std::atomic<bool>* cancelled = nullptr;
  absl::Time deadline = absl::InfiniteFuture();
  // For methods of IndexedDB: answer at the state of this snapshot, which must be from
  // IndexedDB::GetSnapshot. Null: with all writes that returned before the call. SecondaryIndex
  // returns InvalidArgument for any other value, because its state is its own.
  const rocksdb::Snapshot* snapshot = nullptr;
  // For methods of IndexedDB: answer as this transaction reads, so with its own uncommitted writes
  // over the state that the call would use otherwise. See IndexedDB. SecondaryIndex returns
  // InvalidArgument for any other value than null.
  rocksdb::Transaction* transaction = nullptr;
};

// The result of a lookup. Results are in the order of the keys of the query; those of one key or
// range are in (secondary key, primary key) order. A row with several keys in one range is listed
// once, at the first of them. Cheap to copy and move. Not affected by later changes of the
// database.
//
// WARNING: the results are views that live as long as this object or a copy of it. Keep it in a
// variable. Before C++23, `for (auto& row : *db->LookupRows(...))` reads freed memory; write
//
//   const auto rows = db->LookupRows(...);
//   for (auto& row : *rows) ...
template <typename Result>
class LookupResult {
 public:
  using value_type = Result;

  LookupResult() = default;

  // Returns the results of all keys.
  absl::Span<const Result> all() const {
    return contents_ == nullptr ? absl::Span<const Result>() : contents_->results;
  }
  size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  const Result& operator[](size_t i) const { return contents_->results[i]; }
  const Result* begin() const { return all().data(); }
  const Result* end() const { return all().data() + size(); }

  // Returns the number of keys in the query; 1 for a range.
  size_t queries() const { return contents_ == nullptr ? 0 : contents_->matches.size(); }
  // Returns the results of one key. Requires query < queries().
  absl::Span<const Result> of(size_t query) const {
    const std::vector<uint64_t>& offsets = contents_->matches.offsets;
    return all().subspan(offsets[query], offsets[query + 1] - offsets[query]);
  }
  // Returns the values of LookupOptions::columns, one element per column; value i is of (*this)[i].
  absl::Span<const ColumnValues> columns() const {
    return contents_ == nullptr ? absl::Span<const ColumnValues>() : contents_->matches.columns;
  }
  // Returns the cursor of a key or range for LookupOptions::after; empty if there are no more
  // results or there was no limit.
  std::string_view cursor(size_t query = 0) const {
    return contents_ != nullptr && query < contents_->matches.cursors.size()
               ? std::string_view(contents_->matches.cursors[query])
               : std::string_view();
  }

 private:
  template <typename>
  friend struct LookupMemory;  // engine/shards/lookup.cc: fills results

  struct Contents {
    FindResult matches;  // the rows that were found, their offsets, cursors and columns
    StringList primary_keys;
    StringList values;            // FoundRows
    std::vector<Result> results;  // views of these
  };
  std::shared_ptr<Contents> contents_;
};

// A row of the database; views that live as long as the FoundRows that contains it.
struct FoundRow {
  std::string_view primary_key;
  std::string_view value;  // the default column if the row is a wide-column entity
};

using FoundKeys = LookupResult<std::string_view>;  // primary keys
using FoundRows = LookupResult<FoundRow>;

}  // namespace cairn
