#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

// What IndexedDB::Lookup and LookupRows are asked, and what they answer.

namespace cairn {

// The value of one part of a key: a number, text or bytes, or null. Implicit, so that calls take
// literals. Owns no bytes: text must live until the call that it is given to returns.
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

  const DataValue& value() const { return value_; }

 private:
  DataValue value_;
};

// A secondary key by the values of its parts: 42, "Lisbon", or {"PT", 42} for an index of two
// parts. Values are encoded by the index's codec, which refuses those of the wrong kind.
class LogicalKey {
 public:
  template <typename T, std::enable_if_t<std::is_constructible_v<PartValue, const T&>, int> = 0>
  LogicalKey(const T& value) : first_(PartValue(value).value()) {}  // NOLINT
  LogicalKey(std::initializer_list<PartValue> parts)
      : LogicalKey(parts.begin(), parts.end(), [](const PartValue& part) { return part.value(); }) {
  }
  // For keys whose number of parts is known at run time.
  static LogicalKey OfParts(absl::Span<const DataValue> parts) {
    return LogicalKey(parts.begin(), parts.end(), [](const DataValue& part) { return part; });
  }

  absl::Span<const DataValue> parts() const {
    return more_.empty() ? absl::MakeConstSpan(&first_, size_) : absl::MakeConstSpan(more_);
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
  DataValue first_;              // a key of one part is here, and allocates nothing
  std::vector<DataValue> more_;  // all parts of a longer one
};

// The keys that a lookup is for: a batch of keys, or one range of keys. Implicit from a key, from
// keys in braces and from containers of values:
//
//   db->Lookup("age", 42);
//   db->Lookup("city", {"Lisbon", "Oslo"});
//   db->Lookup("place", {{"PT", "Lisbon"}, {"NO", "Oslo"}});   // an index of two parts
//   db->Lookup("city", std::vector<std::string>(...));
//   db->Lookup("age", KeyQuery::Between(18, 65));
//   db->Lookup("place", KeyQuery::Prefix("PT"));               // {"PT", anything}
//   db->Lookup("city", KeyQuery::BytePrefix("Lis"), options);  // with options.limit, in pages
//
// A batch is answered much faster than its keys one by one. Owns no bytes, as PartValue. The keys
// of a batch have a value for each part of the index. The ends of a range may have fewer: such an
// end is that of all keys that begin with these parts, which the range has either all or none of.
class KeyQuery {
 public:
  enum class Kind : uint8_t { kKeys, kPrefix, kBytePrefix, kRange };

  KeyQuery() = default;                                               // no keys
  KeyQuery(std::initializer_list<LogicalKey> keys) : keys_(keys) {}   // NOLINT
  KeyQuery(std::vector<LogicalKey> keys) : keys_(std::move(keys)) {}  // NOLINT
  template <typename T, std::enable_if_t<std::is_constructible_v<PartValue, const T&>, int> = 0>
  KeyQuery(const T& key) : keys_(1, LogicalKey(key)) {}  // NOLINT
  template <typename Container,
            std::enable_if_t<
                !std::is_constructible_v<PartValue, const Container&> &&
                    std::is_constructible_v<PartValue, const typename Container::value_type&>,
                int> = 0>
  KeyQuery(const Container& keys) : keys_(keys.begin(), keys.end()) {}  // NOLINT

  // Keys of several parts whose first parts equal these: Prefix("PT") finds {"PT", "Lisbon"}, but
  // not {"PTX", "Lisbon"}. InvalidArgument from the lookup if these are all parts of the key and
  // the last one is text or bytes: that is a key, or a BytePrefix.
  static KeyQuery Prefix(LogicalKey parts) { return KeyQuery(Kind::kPrefix, {std::move(parts)}); }
  // Keys whose first parts equal these, except for the last one given, text or bytes, which only
  // begins so: BytePrefix("Lis") finds "Lisbon"; BytePrefix({"PT", "Lis"}) finds {"PT", "Lisbon"};
  // BytePrefix("PT") finds {"PTX", "Lisbon"}, too.
  static KeyQuery BytePrefix(LogicalKey parts) {
    return KeyQuery(Kind::kBytePrefix, {std::move(parts)});
  }
  // Keys from `lower` on, and before `upper`. A range whose ends have crossed is empty.
  static KeyQuery Range(LogicalKey lower, LogicalKey upper) {
    return KeyQuery(std::move(lower), Bound::kInclusive, std::move(upper), Bound::kExclusive);
  }
  // Keys from `lower` to `upper`, both included, as BETWEEN in SQL.
  static KeyQuery Between(LogicalKey lower, LogicalKey upper) {
    return KeyQuery(std::move(lower), Bound::kInclusive, std::move(upper), Bound::kInclusive);
  }
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
  // Every key of the index.
  static KeyQuery Everything() {
    return KeyQuery(LogicalKey({}), Bound::kOpen, LogicalKey({}), Bound::kOpen);
  }

  Kind kind() const { return kind_; }
  // kKeys: the batch; kPrefix, kBytePrefix: one; kRange: lower and upper end, which mean nothing if
  // open.
  absl::Span<const LogicalKey> keys() const { return keys_; }
  // kRange: kInclusive, kExclusive or kOpen.
  Bound lower_bound() const { return lower_bound_; }
  Bound upper_bound() const { return upper_bound_; }
  // The number of keys of a batch, otherwise 1.
  size_t size() const { return kind_ == Kind::kKeys ? keys_.size() : 1; }

 private:
  KeyQuery(Kind kind, std::vector<LogicalKey> keys) : kind_(kind), keys_(std::move(keys)) {}
  KeyQuery(LogicalKey lower, Bound lower_bound, LogicalKey upper, Bound upper_bound)
      : kind_(Kind::kRange),
        lower_bound_(lower_bound),
        upper_bound_(upper_bound),
        keys_({std::move(lower), std::move(upper)}) {}

  Kind kind_ = Kind::kKeys;
  Bound lower_bound_ = Bound::kInclusive;
  Bound upper_bound_ = Bound::kInclusive;
  std::vector<LogicalKey> keys_;
};

struct LookupOptions {
  // Rows for each key of a batch, or of the range: a row that has several keys in the range counts
  // once, over all pages, where it comes first. 0: no rows, and no cursor.
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  Order order = Order::kAscending;
  // Goes on where an earlier lookup reached its limit: LookupResult::cursor of the same index,
  // order, and single key, prefix or range. Empty: begins. A cursor stays good while
  // the database is written to, and after it is opened again; a row with several keys that is
  // written to between two pages may come twice or not at all, as its first key moves.
  //
  //   do {
  //     rows = db->LookupRows(index, query, page);
  //     ...
  //     page.after = rows->cursor();
  //   } while (!page.after.empty());
  std::string after;
  // Lookup also returns these columns of each row, by name, of those that the index includes
  // (IndexSpec::include), and the database is not asked: LookupResult::columns. InvalidArgument,
  // naming those that there are, for another.
  std::vector<std::string> columns = {};
};

// What a lookup found: results in the order of the keys asked for, those of one key or range by
// (secondary key, primary key). A row that has several keys in one range is there once, where it
// comes first. A value that is cheap to copy and move; stays as it is whatever the database does.
// What it holds are views, which live as long as this or a copy of it. So keep it in a variable:
// `for (auto& row : *db->LookupRows(...))` is valid only from C++23 on.
template <typename Result>
class LookupResult {
 public:
  using value_type = Result;

  LookupResult() = default;
  // `offsets`, `cursors`, `columns`: as FindResult has them, over `results`, which point into what
  // `bytes` keeps.
  LookupResult(std::vector<Result> results, std::vector<uint64_t> offsets,
               std::vector<std::string> cursors, std::shared_ptr<const void> bytes,
               std::vector<ColumnValues> columns = {})
      : contents_(std::make_shared<const Contents>(Contents{std::move(results), std::move(offsets),
                                                            std::move(cursors), std::move(bytes),
                                                            std::move(columns)})) {}

  // The results of all keys together.
  absl::Span<const Result> all() const {
    return contents_ == nullptr ? absl::Span<const Result>() : contents_->results;
  }
  size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  const Result& operator[](size_t i) const { return contents_->results[i]; }
  const Result* begin() const { return all().data(); }
  const Result* end() const { return all().data() + size(); }

  // The keys that were asked for, or 1 for a range.
  size_t queries() const { return contents_ == nullptr ? 0 : contents_->offsets.size() - 1; }
  // The results of the i-th of them. Requires query < queries().
  absl::Span<const Result> of(size_t query) const {
    const std::vector<uint64_t>& offsets = contents_->offsets;
    return all().subspan(offsets[query], offsets[query + 1] - offsets[query]);
  }
  // LookupOptions::columns, one of these a column: value i of each is of (*this)[i].
  absl::Span<const ColumnValues> columns() const {
    return contents_ == nullptr ? absl::Span<const ColumnValues>() : contents_->columns;
  }
  // Where the i-th goes on, for LookupOptions::after; empty where there is no more, or no limit.
  std::string_view cursor(size_t query = 0) const {
    return contents_ != nullptr && query < contents_->cursors.size()
               ? std::string_view(contents_->cursors[query])
               : std::string_view();
  }

 private:
  struct Contents {
    std::vector<Result> results;
    std::vector<uint64_t> offsets;
    std::vector<std::string> cursors;
    std::shared_ptr<const void> bytes;
    std::vector<ColumnValues> columns;
  };
  std::shared_ptr<const Contents> contents_;
};

// A row as it is in the database; views into the FoundRows that has it.
struct FoundRow {
  std::string_view primary_key;
  std::string_view value;  // of the default column where the row is an entity
};

using FoundKeys = LookupResult<std::string_view>;  // primary keys
using FoundRows = LookupResult<FoundRow>;

}  // namespace cairn
