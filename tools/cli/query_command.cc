// cairn query: prints the entries of an index in ranges, page by page, or the results of a
// predicate over several indexes (where_query.h).
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/route_options.h"
#include "tools/cli/selectors.h"
#include "tools/cli/where_query.h"
#include "tools/print/entry_printer.h"
#include "tools/print/output.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

// Entries in memory at a time; more are read in pages. Rows with values take more memory.
constexpr uint64_t kPageEntries = 1 << 16;
constexpr uint64_t kPageRows = 1 << 12;
// Ranges that are counted at a time. Those whose entries fit in a page are then read together.
constexpr size_t kMaxRanges = 1 << 20;

struct QueryOptionsGiven {
  std::vector<std::string> indexes;
  std::string db;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  bool reverse = false;
  std::string format = "text";
  std::vector<std::string> select;
  SelectorOptions selectors;
  RouteOptions routes;
  WhereQuery where;
};

// One execution of the command for an index's entries.
class Query {
 public:
  Query(QueryOptionsGiven* given, const SecondaryIndex& index, const SnapshotSource* source)
      : index_(index),
        source_(source),
        order_(given->reverse ? Order::kDescending : Order::kAscending),
        left_(given->limit),
        routes_(given->routes),
        columns_(index.codec().kind()),
        select_(given->select),
        printer_(EntryPrinter::Make(given->format, index.codec(), select_, source != nullptr,
                                    &output_)) {}

  absl::Status Run(std::vector<KeyRange> ranges);

 private:
  bool done() const { return left_ == 0; }
  uint64_t page_entries() const { return source_ == nullptr ? kPageEntries : kPageRows; }
  // Counts the entries of each of some ranges.
  absl::Status Count(absl::Span<const KeyRange> ranges);
  // The number of ranges of counts_, from `first` on, whose entries fit in a page; at least one.
  size_t PageSize(size_t first) const;
  // Prints the entries of some ranges, which are in query order. They have at most a page of
  // entries in total, or there is only one range.
  absl::Status PrintPage(absl::Span<const KeyRange> ranges);
  // Prints the rest of one range, from a cursor to its end.
  absl::Status PrintRest(const KeyRange& range, std::string cursor);
  // Reads one page of each range, from the cursors on if there are any.
  absl::Status Scan(absl::Span<const KeyRange> ranges, absl::Span<const std::string> after);
  // Prints the entries that Scan found for range i.
  absl::Status PrintEntries(size_t i);
  absl::Status PrintWithValues(size_t begin, size_t end);
  // The same for the entries from `begin` on; those of key k end at key_ends[k]. The first key
  // continues after key_cursor_, which is then set to continue after the last key.
  absl::Status PrintKeysWithValues(size_t begin, absl::Span<const size_t> key_ends);
  absl::Status PrintEntry(size_t entry, std::string_view primary_key,
                          std::optional<std::string_view> value);

  const SecondaryIndex& index_;
  const SnapshotSource* const source_;  // null: values are not printed
  const Order order_;
  uint64_t left_;  // of the limit
  RouteOptions& routes_;
  uint64_t stale_ = 0;
  RangeColumns columns_;
  std::vector<uint64_t> counts_;
  FindResult matches_;
  StringList primary_keys_;
  FetchResult rows_;
  std::string
      key_cursor_;  // of the range's last key with values; empty if all its rows are printed
  Output output_;
  const std::vector<std::string> select_;  // included columns
  std::vector<DataValue> selected_;        // of an entry's row
  std::unique_ptr<EntryPrinter> printer_;
};

absl::Status Query::Run(std::vector<KeyRange> ranges) {
  ranges = Disjoint(std::move(ranges));
  if (order_ == Order::kDescending) std::reverse(ranges.begin(), ranges.end());
  for (size_t first = 0; first < ranges.size() && !done(); first += kMaxRanges) {
    const auto some = absl::MakeConstSpan(ranges).subspan(first, kMaxRanges);
    RETURN_IF_ERROR(Count(some));
    for (size_t i = 0; i < some.size() && !done();) {
      const size_t size = PageSize(i);
      RETURN_IF_ERROR(PrintPage(some.subspan(i, size)));
      i += size;
    }
  }
  printer_->End();
  if (stale_ != 0) {
    std::fprintf(stderr,
                 "cairn: %s entries left out: their rows have changed since the index was built\n",
                 WithCommas(stale_).c_str());
  }
  return output_.Flush();
}

absl::Status Query::Count(absl::Span<const KeyRange> ranges) {
  counts_.assign(ranges.size(), 0);
  // a single range is a page, however many entries it has
  if (ranges.size() == 1) return absl::OkStatus();
  columns_.Clear();
  for (const KeyRange& range : ranges) columns_.Add(range);
  Batch batch = Batch::Count(columns_.Batch(), absl::MakeSpan(counts_));
  routes_.AddTo(&batch);
  RETURN_IF_ERROR(index_.Execute(batch));
  routes_.Note();
  return absl::OkStatus();
}

size_t Query::PageSize(size_t first) const {
  const uint64_t most = std::min(page_entries(), left_);
  size_t last = first + 1;
  for (uint64_t sum = counts_[first]; last < counts_.size(); ++last) {
    sum += counts_[last];
    if (sum > most) break;
  }
  return last - first;
}

absl::Status Query::Scan(absl::Span<const KeyRange> ranges, absl::Span<const std::string> after) {
  if (Interrupted()) return absl::CancelledError("interrupted");
  columns_.Clear();
  for (const KeyRange& range : ranges) columns_.Add(range);
  Batch batch = Batch::Scan(columns_.Batch(), &matches_);
  batch.ranges.after = after;
  batch.options.order = order_;
  batch.options.with_keys = true;
  batch.options.limit = std::min(page_entries(), left_);
  batch.options.columns = select_;
  routes_.AddTo(&batch);
  RETURN_IF_ERROR(index_.Execute(batch));
  routes_.Note();
  return absl::OkStatus();
}

absl::Status Query::PrintPage(absl::Span<const KeyRange> ranges) {
  RETURN_IF_ERROR(Scan(ranges, {}));
  for (size_t i = 0; i < ranges.size() && !done(); ++i) {
    key_cursor_.clear();
    RETURN_IF_ERROR(PrintEntries(i));
    // The rest of a single range, if there is any.
    RETURN_IF_ERROR(PrintRest(ranges[i], matches_.cursors[i]));
  }
  return absl::OkStatus();
}

absl::Status Query::PrintRest(const KeyRange& range, std::string cursor) {
  while (!cursor.empty() && !done()) {
    RETURN_IF_ERROR(Scan({&range, 1}, {&cursor, 1}));
    cursor = matches_.cursors[0];
    RETURN_IF_ERROR(PrintEntries(0));
  }
  return absl::OkStatus();
}

absl::Status Query::PrintEntries(size_t i) {
  const size_t begin = matches_.offsets[i];
  const size_t end = matches_.offsets[i + 1];
  if (begin == end) return absl::OkStatus();
  if (source_ != nullptr) return PrintWithValues(begin, end);
  primary_keys_.Clear();
  RETURN_IF_ERROR(index_.PrimaryKeys(matches_.rows(i), &primary_keys_));
  for (size_t entry = begin; entry < end; ++entry) {
    RETURN_IF_ERROR(PrintEntry(entry, primary_keys_[entry - begin], std::nullopt));
  }
  return absl::OkStatus();
}

absl::Status Query::PrintEntry(size_t entry, std::string_view primary_key,
                               std::optional<std::string_view> value) {
  if (done()) return absl::OkStatus();
  --left_;
  selected_.clear();
  for (const ColumnValues& column : matches_.columns) selected_.push_back(column.value(entry));
  return printer_->Print({matches_.keys, entry, primary_key, selected_, value});
}

absl::Status Query::PrintWithValues(size_t begin, size_t end) {
  // Fetch reports whether a row still has some key in a range. But an entry is stale as soon as its
  // row no longer has the entry's own key, so each key of the page is queried as a separate range.
  // The last one is queried apart, up to the end of the page, as the next page may continue it.
  std::vector<size_t> key_ends;
  size_t last = begin;  // the first entry of the last key
  for (size_t entry = begin; entry < end;) {
    last = entry;
    while (++entry < end && SameKey(matches_.keys, last, entry)) {
    }
    key_ends.push_back(entry);
  }
  const absl::Span<const size_t> ends(key_ends);
  if (ends.size() > 1) {
    RETURN_IF_ERROR(PrintKeysWithValues(begin, ends.first(ends.size() - 1)));
    key_cursor_.clear();
  }
  return PrintKeysWithValues(last, ends.last(1));
}

absl::Status Query::PrintKeysWithValues(size_t begin, absl::Span<const size_t> key_ends) {
  columns_.Clear();
  QueryOptions options;
  options.order = order_;
  options.limit = 0;  // the highest number of rows that one of the keys needs
  for (size_t key = 0, entry = begin; key < key_ends.size(); entry = key_ends[key++]) {
    columns_.AddEqual(matches_.keys, entry);
    options.limit = std::max<uint64_t>(options.limit, key_ends[key] - entry);
  }
  std::vector<std::string> cursors(key_ends.size());
  cursors[0] = key_cursor_;
  RangeBatch batch = columns_.Batch();
  batch.after = cursors;
  RETURN_IF_ERROR(index_.Fetch(*source_, batch, options, &rows_));
  key_cursor_ = rows_.cursors.back();

  // Both have the same order: an entry without its row is stale.
  size_t entry = begin;
  for (size_t key = 0; key < key_ends.size(); ++key) {
    uint64_t row = rows_.offsets[key];
    for (; entry < key_ends[key] && !done(); ++entry) {
      if (row == rows_.offsets[key + 1] || rows_.row(row) != matches_.row(entry)) {
        ++stale_;
        continue;
      }
      RETURN_IF_ERROR(PrintEntry(entry, rows_.primary_keys[row], rows_.values[row]));
      ++row;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> RunQuery(QueryOptionsGiven* given) {
  if (given->where.any() || given->indexes.size() > 1) {
    if (given->selectors.given() || !given->db.empty() || given->routes.chooses()) {
      return UsageError(
          "--eq, --range, --prefix, --keys, --db, --device and --route are for the entries of one "
          "index: select rows with --where");
    }
    WhereQuery& where = given->where;
    where.indexes = given->indexes;
    where.order_by.erase(std::remove(where.order_by.begin(), where.order_by.end(), ""),
                         where.order_by.end());
    where.select = given->select;
    where.reverse = given->reverse;
    where.limit = given->limit;
    where.explain = given->routes.explains();
    where.format = given->format;
    RETURN_IF_ERROR(where.Run());
    return kGood;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SecondaryIndex> index,
                   SecondaryIndex::Open(given->indexes[0], given->routes.Open()));
  ASSIGN_OR_RETURN(std::vector<KeyRange> ranges, given->selectors.Parse(index->codec()));
  std::unique_ptr<SnapshotSource> source;
  if (!given->db.empty()) {
    ASSIGN_OR_RETURN(source, SnapshotSource::FromDirectory(given->db, index->spec().column_family));
  }
  Query query(given, *index, source.get());
  const absl::Status status = query.Run(std::move(ranges));
  given->routes.Print();
  RETURN_IF_ERROR(status);
  return kGood;
}

}  // namespace

void AddQueryCommand(CLI::App* app, Action* action) {
  auto given = std::make_shared<QueryOptionsGiven>();
  CLI::App* command = app->add_subcommand(
      "query", "Prints entries of an index, or rows and aggregates for a predicate over several");
  command->add_option("INDEX", given->indexes, "The indexes' directories")->required();
  given->selectors.AddTo(command);
  given->where.AddTo(command);
  given->routes.AddTo(command);
  command->add_option("--select", given->select, "Also print these included columns")
      ->type_name("COLUMN,…")
      ->delimiter(',');
  command
      ->add_option("--db", given->db,
                   "Also print rows' values, from this database; omit rows that changed")
      ->type_name("DIR");
  AddComparatorOption(command);
  command->add_option("--limit", given->limit, "The maximum number of entries, rows or groups")
      ->type_name("N")
      ->check(Count());
  command->add_flag("--reverse", given->reverse, "Print in descending order of keys");
  command->add_option("--format", given->format, "text, tsv or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "tsv", "json"}));
  command->footer(R"(
Selectors choose entries: --eq, --range, --prefix, --keys. With several, each entry is printed once.
Entries of one key are in primary-key order.

--where chooses rows; without it, all rows with an entry in one of several indexes are chosen. The
indexes must be of one column family and one state of the database. They may be sharded; if they are
sharded by source, they must have the same sources in the same order. A predicate uses the names in
the indexes' specs, or else the names of their directories:

  = <> < <= > >= IN (…) BETWEEN … AND … LIKE 'text%' STARTS WITH … IS [NOT] NULL

combined with AND, OR, NOT and parentheses. Text is in single quotes, and keys of several parts are
in parentheses: place = ('PT', 'Lisbon'). A ? is the value of the next --param. Columns are the
included columns of the indexes, and their keys by the indexes' names; for an index with several
parts, name.part1 …

--count, --count-distinct, --sum, --avg, --min, --max and --group-by print one line per group: its
columns, then the aggregates in this order. --order-by calls them count, sum(price) …

Keys have the form in which cairn prints them: the parts of a composite key are separated by commas,
numbers are decimal, any byte of text or bytes may be \xHH, and null is \N.

tsv    secondary key, primary key[, columns][, value], tab-separated; every byte outside '!' to
       '~', and the backslash, as \xHH; null as \N. Rows have no key; groups have a headline
json   {"key":…,"primary_key":…[,"columns":{…}][,"value":…]}; a composite key is an array, and bytes
       that are not UTF-8 are {"hex":"…"}. Rows have no key; groups are {"city":…,"count":…}

Examples:
  cairn query /tmp/phone --eq=25-989-741-2988
  cairn query /tmp/phone --prefix=25- --prefix=26- --limit=20 --db=/tmp/db
  cairn query /tmp/nation_balance --eq=7,100 --select=name,phone
  cairn query /tmp/nation_balance --range=7,9990..8 --reverse --format=tsv
  cairn query /tmp/age /tmp/city --where="age >= 18 AND NOT city = 'Oslo'" --order-by=age --limit=10
  cairn query /tmp/age /tmp/city --where="age >= ? AND city = ?" --param=18 --param="$CITY"
  cairn query /tmp/age /tmp/city --where="age >= 18" --group-by=city --count --avg=income
              --order-by="avg(income) desc" --limit=10)");
  command->callback([given, action] { *action = [given] { return RunQuery(given.get()); }; });
}

}  // namespace cairn::tools
