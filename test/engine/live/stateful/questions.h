#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cairn/aggregate.h"
#include "cairn/indexed_db.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "test/engine/live/stateful/rows.h"

// The queries of an index, and their expected results.

namespace cairn::stateful {

// Ends a program that has found a defect.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The changes of rows by compactions, for an index with dropped_rows=ignore: it has their former
// entries.
enum class Losses : uint8_t { kNone, kRemoved, kChanged };

// Queries one index of a database without concurrent writes, or at the snapshot and in the
// transaction of `at`. Each query must have
// the results that follow from the rows, or be refused; `refusal` is that of the first refused
// query.
class Questions {
 public:
  Questions(IndexedDB* db, const IndexKind& kind, const Rows& rows, uint32_t extractor,
            uint64_t seed, Losses losses, const LookupOptions& at = {})
      : db_(*db),
        kind_(kind),
        rows_(rows),
        entries_(EntriesOf(kind, rows, extractor)),
        random_(seed),
        losses_(losses),
        options_(at) {}

  absl::Status AskAll() {
    if (losses_ != Losses::kNone) return AskRows(), refusal_;
    AskKeys();
    AskRange();
    AskPages();
    AskLeading();
    AskRows();
    AskPinned();
    return refusal_;
  }

 private:
  // Whether there is a result. An index may refuse at any time, for one of two reasons.
  bool Answered(const absl::Status& status, const char* question) {
    if (status.ok()) return true;
    // Rows that the index does not accept are refused before they are committed, too.
    const bool is_of_transaction =
        options_.transaction != nullptr &&
        (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status));
    if (!absl::IsUnavailable(status) && !absl::IsFailedPrecondition(status) && !is_of_transaction) {
      throw Failure(absl::StrCat(kind_.name, ": ", question, ": ", status.ToString()));
    }
    if (refusal_.ok()) refusal_ = status;
    return false;
  }
  template <typename T>
  void Expect(const T& expected, const T& found, const std::string& question) {
    if (expected == found) return;
    throw Failure(absl::StrCat(kind_.name, ": ", question, ": expected ", Text(expected),
                               ", found ", Text(found)));
  }
  static std::string Text(const std::vector<std::string>& rows) {
    return absl::StrCat("[", absl::StrJoin(rows, " "), "]");
  }
  static std::string Text(uint64_t number) { return absl::StrCat(number); }
  static std::string Text(const std::map<std::string, uint64_t>& groups) {
    return absl::StrCat("[", absl::StrJoin(groups, " ", absl::PairFormatter("=")), "]");
  }

  static LogicalKey Logical(const Key& key, size_t parts) {
    std::vector<DataValue> values;
    for (size_t i = 0; i < std::min(parts, key.size()); ++i) {
      if (const auto* number = std::get_if<uint64_t>(&key[i])) {
        values.emplace_back(*number);
      } else {
        values.emplace_back(std::string_view(std::get<std::string>(key[i])));
      }
    }
    return LogicalKey::OfParts(values);
  }
  static std::string Text(const Key& key) {
    return absl::StrJoin(key, "/", [](std::string* out, const Part& part) {
      std::visit([out](const auto& value) { absl::StrAppend(out, value); }, part);
    });
  }
  std::vector<std::string> Found(const FoundKeys& found, size_t query) {
    std::vector<std::string> rows;
    for (const std::string_view row : found.of(query)) rows.emplace_back(row);
    return rows;
  }
  // The rows of [begin, end) of the entries, each at its first occurrence.
  std::vector<std::string> RowsOnce(size_t begin, size_t end, bool descending) {
    std::vector<std::string> rows;
    std::set<std::string> seen;
    for (size_t i = begin; i < end; ++i) {
      const std::string& row = entries_[descending ? end - 1 - (i - begin) : i].row;
      if (seen.insert(row).second) rows.push_back(row);
    }
    return rows;
  }
  std::vector<Key> Keys() {
    std::vector<Key> keys;
    for (const Entry& entry : entries_) {
      if (keys.empty() || keys.back() != entry.key) keys.push_back(entry.key);
    }
    return keys;
  }
  // A key of the index, or one that no row has.
  Key AnyKey() {
    if (entries_.empty() || random_() % 8 == 0) {
      Key key = {std::string(random_() % 2 == 0 ? "c1z" : "m")};
      if (kind_.keys == PlaceOf) key.emplace_back(uint64_t{1});
      return key;
    }
    return entries_[random_() % entries_.size()].key;
  }

  // Queries every existing key, and some absent ones.
  void AskKeys() {
    std::vector<Key> keys = Keys();
    keys.push_back({std::string("Ghost")});
    if (kind_.keys == PlaceOf) keys.back().emplace_back(uint64_t{1});
    for (uint32_t i = 0; i < 5; ++i) {
      Key key = {absl::StrCat(kind_.keys == MailOf ? "m" : kind_.keys == AllTagsOf ? "t" : "c", i)};
      if (kind_.keys == PlaceOf) key.emplace_back(uint64_t{i % 3});
      keys.push_back(key);
    }
    std::vector<LogicalKey> asked;
    for (const Key& key : keys) asked.push_back(Logical(key, key.size()));
    LookupOptions options = options_;
    if (kind_.column != nullptr) options.columns = {kind_.column};
    const auto found = db_.Lookup(kind_.name, KeyQuery(asked), options);
    if (!Answered(found.status(), "keys")) return;
    size_t result = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      std::vector<std::string> expected;
      for (const Entry& entry : entries_) {
        if (entry.key == keys[i]) expected.push_back(entry.row);
      }
      Expect(expected, Found(*found, i), absl::StrCat("rows of key ", Text(keys[i])));
      if (kind_.column == nullptr) continue;
      for (const std::string& row : expected) {
        const std::string value(found->columns()[0].bytes(result++));
        Expect<std::vector<std::string>>({kind_.column_of(rows_.at(row))}, {value},
                                         absl::StrCat("column ", kind_.column, " of ", row));
      }
    }
  }

  void AskRange() {
    Key lower = AnyKey(), upper = AnyKey();
    const bool descending = random_() % 2 == 0;
    size_t begin = 0, end = entries_.size();
    KeyQuery query = KeyQuery::Everything();
    switch (random_() % 4) {
      case 0:
        break;
      case 1:
        query = KeyQuery::AtLeast(Logical(lower, lower.size()));
        begin = LowerBound(lower);
        break;
      case 2:
        query = KeyQuery::LessThan(Logical(upper, upper.size()));
        end = LowerBound(upper);
        break;
      default:
        query = KeyQuery::Range(Logical(lower, lower.size()), Logical(upper, upper.size()));
        begin = LowerBound(lower);
        end = std::max(begin, LowerBound(upper));
    }
    LookupOptions options = options_;
    options.order = descending ? Order::kDescending : Order::kAscending;
    const auto found = db_.Lookup(kind_.name, query, options);
    if (!Answered(found.status(), "a range")) return;
    Expect(RowsOnce(begin, end, descending), Found(*found, 0),
           absl::StrCat("rows of [", Text(lower), ", ", Text(upper), ")"));
  }
  size_t LowerBound(const Key& key) {
    return static_cast<size_t>(std::lower_bound(entries_.begin(), entries_.end(), Entry{key, ""}) -
                               entries_.begin());
  }

  // Queries all of a range, a few rows at a time.
  void AskPages() {
    if (kind_.keys == AllTagsOf && !IsOn("pages_of_many_keys")) return;
    LookupOptions options = options_;
    options.limit = 1 + random_() % 3;
    options.order = random_() % 2 == 0 ? Order::kDescending : Order::kAscending;
    std::vector<std::string> expected =
        RowsOnce(0, entries_.size(), options.order == Order::kDescending);
    const bool whole_rows = random_() % 2 == 0;
    size_t at = 0;
    do {
      std::vector<std::string> found, page;
      if (whole_rows) {
        const auto rows = db_.LookupRows(kind_.name, KeyQuery::Everything(), options);
        if (!Answered(rows.status(), "a page of rows")) return;
        for (const FoundRow& row : *rows) {
          found.emplace_back(row.primary_key);
          CheckValue(row);
        }
        options.after = std::string(rows->cursor());
      } else {
        const auto keys = db_.Lookup(kind_.name, KeyQuery::Everything(), options);
        if (!Answered(keys.status(), "a page")) return;
        found = Found(*keys, 0);
        options.after = std::string(keys->cursor());
      }
      for (size_t i = 0; i < options.limit && at + i < expected.size(); ++i) {
        page.push_back(expected[at + i]);
      }
      Expect(page, found,
             absl::StrCat("the page of ", options.limit, " rows from row ", at, " on"));
      at += page.size();
    } while (!options.after.empty());
    Expect<uint64_t>(expected.size(), at, "rows of all pages");
  }

  // Queries a prefix and, for keys of two parts, the first part.
  void AskLeading() {
    const Key key = AnyKey();
    const std::string text = std::get<std::string>(key[0]);
    const std::string prefix = text.substr(0, 1 + random_() % text.size());
    const auto starting =
        db_.Lookup(kind_.name, KeyQuery::BytePrefix(std::string_view(prefix)), options_);
    if (!Answered(starting.status(), "a prefix")) return;
    std::set<std::string> seen;
    std::vector<std::string> expected, leading;
    for (const Entry& entry : entries_) {
      const std::string& first = std::get<std::string>(entry.key[0]);
      if (first.starts_with(prefix) && seen.insert(entry.row).second) {
        expected.push_back(entry.row);
      }
      if (first == text) leading.push_back(entry.row);
    }
    Expect(expected, Found(*starting, 0), absl::StrCat("rows of prefix ", prefix));
    if (key.size() < 2) return;
    const auto found = db_.Lookup(kind_.name, KeyQuery::Prefix(std::string_view(text)), options_);
    if (!Answered(found.status(), "leading parts")) return;
    Expect(leading, Found(*found, 0), absl::StrCat("rows of leading part ", text));
  }

  void AskRows() {
    const Key one = AnyKey(), other = AnyKey();
    const auto found = db_.LookupRows(
        kind_.name,
        KeyQuery(std::vector<LogicalKey>{Logical(one, one.size()), Logical(other, other.size())}),
        options_);
    if (!Answered(found.status(), "whole rows")) return;
    for (size_t query = 0; query < 2; ++query) {
      const Key& key = query == 0 ? one : other;
      std::vector<std::string> expected, rows;
      std::set<std::string> found_rows;
      for (const FoundRow& row : found->of(query)) {
        rows.emplace_back(row.primary_key);
        found_rows.insert(rows.back());
        CheckValue(row);
      }
      for (const Entry& entry : entries_) {
        if (entry.key != key || (MayBeLost(entry.row) && found_rows.count(entry.row) == 0))
          continue;
        expected.push_back(entry.row);
      }
      Expect(expected, rows, absl::StrCat("whole rows of ", Text(key)));
    }
  }
  // Whether a compaction may have given the row this key: by changing its value, or by removing the
  // value to which operands were merged.
  bool MayBeLost(const std::string& row) const {
    const std::string& value = rows_.at(row);
    return losses_ != Losses::kNone &&
           (!value.starts_with("c") || (losses_ == Losses::kChanged && value.starts_with("c4|")));
  }
  void CheckValue(const FoundRow& row) {
    const auto there = rows_.find(std::string(row.primary_key));
    const std::string expected = there == rows_.end() ? "no row" : there->second;
    Expect<std::vector<std::string>>({expected}, {std::string(row.value)},
                                     absl::StrCat("value of row ", std::string(row.primary_key)));
  }

  // Counts, in total and per group of equal first parts; and verifies the structure.
  void AskPinned() {
    const auto pinned = db_.Pin(kind_.name, options_);
    if (!Answered(pinned.status(), "pinning")) return;
    const RangeBatch everything = RangeBatch::Everything((*pinned)->kind());
    uint64_t count = 0;
    if (!Answered((*pinned)->Count(everything, absl::MakeSpan(&count, 1)), "counting")) return;
    Expect<uint64_t>(entries_.size(), count, "entries");

    std::map<std::string, uint64_t> counts, distinct, counted, counted_distinct;
    std::map<std::string, std::set<Key>> keys;
    for (const Entry& entry : entries_) {
      const std::string& group = std::get<std::string>(entry.key[0]);
      ++counts[group];
      keys[group].insert(entry.key);
    }
    for (const auto& [group, its_keys] : keys) distinct[group] = its_keys.size();
    AggregateGroupsResult groups;
    const Aggregate aggregates[] = {Aggregate::Count(), Aggregate::CountDistinct()};
    const absl::Status status =
        (*pinned)->AggregateGroups(everything, 1, aggregates, QueryOptions(), &groups);
    if (!Answered(status, "groups")) return;
    for (size_t i = 0; i < groups.keys[0].size(); ++i) {
      const std::string group(groups.keys[0].bytes(i));
      counted[group] = groups.values[0].numbers<uint64_t>()[i];
      counted_distinct[group] = groups.values[1].numbers<uint64_t>()[i];
    }
    Expect(counts, counted, "entries of each group");
    if (IsOn("distinct_groups")) Expect(distinct, counted_distinct, "keys of each group");
    if (random_() % 8 == 0 && !(*pinned)->Verify().ok()) {
      throw Failure(absl::StrCat(kind_.name, ": ", (*pinned)->Verify().ToString()));
    }
  }

  IndexedDB& db_;
  const IndexKind& kind_;
  const Rows& rows_;
  const std::vector<Entry> entries_;
  std::mt19937_64 random_;
  const Losses losses_;
  const LookupOptions options_;  // with the snapshot and the transaction
  absl::Status refusal_;
};

// Queries two indexes of one column family together for the rows that have a key of each. Returns
// OK also if they refuse.
inline void AskTogether(IndexedDB* db, const IndexKind& a, const IndexKind& b, const Rows& rows,
                        uint32_t extractor, uint64_t seed, const LookupOptions& at = {}) {
  const std::vector<Entry> of_a = EntriesOf(a, rows, extractor),
                           of_b = EntriesOf(b, rows, extractor);
  if (of_a.empty() || of_b.empty()) return;
  const std::string& in_a = std::get<std::string>(of_a[seed % of_a.size()].key[0]);
  const std::string& in_b = std::get<std::string>(of_b[seed / 7 % of_b.size()].key[0]);
  const auto rows_of = [](const std::vector<Entry>& entries, const std::string& text) {
    std::set<std::string> found;
    for (const Entry& entry : entries) {
      if (std::get<std::string>(entry.key[0]) == text) found.insert(entry.row);
    }
    return found;
  };
  const std::set<std::string> its_a = rows_of(of_a, in_a), its_b = rows_of(of_b, in_b);
  std::set<std::string> either = its_a;
  either.insert(its_b.begin(), its_b.end());
  const auto group = db->PinGroup({a.name, b.name}, at);
  const absl::Status& status = group.status();
  if (absl::IsUnavailable(status) || absl::IsFailedPrecondition(status)) return;
  if (at.transaction != nullptr && !status.ok()) return;  // the indexes have been asked alone
  if (!status.ok()) throw Failure(absl::StrCat("pinning together: ", status.ToString()));
  const Predicate is_a(a.name, std::string_view(in_a));
  const Predicate is_b(b.name, std::string_view(in_b));
  const auto both_found = (*group)->Count(is_a && is_b),
             either_found = (*group)->Count(is_a || is_b);
  for (const auto* found : {&both_found, &either_found}) {
    if (!found->ok()) throw Failure(absl::StrCat("counting: ", found->status().ToString()));
  }
  const uint64_t both = its_a.size() + its_b.size() - either.size();
  if (*both_found == both && *either_found == either.size()) return;
  throw Failure(absl::StrCat(a.name, "=", in_a, " and ", b.name, "=", in_b, ": expected ", both,
                             " rows of both and ", either.size(), " of either, found ", *both_found,
                             " and ", *either_found));
}

}  // namespace cairn::stateful
