#include "tools/cli/where_query.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cairn/column.h"
#include "cairn/index_group.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/secondary_index.h"
#include "index/machine/status_macros.h"
#include "tools/cli/command.h"
#include "tools/cli/route_options.h"
#include "tools/print/table_printer.h"
#include "tools/text/readable.h"

namespace cairn::tools {
namespace {

// Rows whose columns are in memory at a time.
constexpr size_t kRowsTogether = 1 << 14;

// An index without a name has the name of its directory.
absl::StatusOr<std::shared_ptr<const IndexGroup>> OpenGroup(
    const std::vector<std::string>& directories) {
  std::vector<IndexGroup::Member> members;
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(std::shared_ptr<SecondaryIndex> index,
                     SecondaryIndex::Open(directory, ForFewQueries()));
    std::string name = index->spec().name;
    if (name.empty()) {
      std::filesystem::path path(directory);
      if (path.filename().empty()) path = path.parent_path();
      name = path.filename().string();
    }
    members.push_back({std::move(index), std::move(name)});
  }
  return IndexGroup::Create(std::move(members));
}

// --order-by with these columns; --reverse reverses it.
absl::StatusOr<std::vector<GroupOrder>> OrderOf(const WhereQuery& query,
                                                const std::vector<std::string>& columns) {
  absl::StatusOr<std::vector<GroupOrder>> order = ParseGroupOrder(query.order_by, columns);
  if (!order.ok()) {
    return UsageError(absl::StrCat("--order-by: ", std::string(order.status().message())));
  }
  for (GroupOrder& by : *order) {
    if (!query.reverse) continue;
    by.order = by.order == Order::kAscending ? Order::kDescending : Order::kAscending;
  }
  return order;
}

// Converts a value of --param to the type of the part of an index that it is compared with: a
// number, or unchanged text or bytes.
absl::StatusOr<DataValue> ReadParameter(const IndexGroup& group,
                                        const Predicate::Parameter& parameter,
                                        const std::string& text) {
  for (const IndexGroup::Member& member : group.members()) {
    const absl::Span<const DataType> parts = member.index->codec().parts();
    if (member.name != parameter.index || parameter.part >= parts.size()) continue;
    const DataType type = parts[parameter.part];
    if (type == DataType::kText || type == DataType::kBytes) break;
    ASSIGN_OR_RETURN(const KeyCodec codec, KeyCodec::Create(absl::MakeConstSpan(&type, 1)));
    EncodedKeys keys(codec.kind());
    std::vector<DataValue> values;
    std::string scratch;
    RETURN_IF_ERROR(codec.Parse(text, &keys));
    RETURN_IF_ERROR(codec.Decode(keys, 0, &values, &scratch));
    return values[0];
  }
  return DataValue(std::string_view(text));
}

// Parses --where with the values of --param.
absl::StatusOr<Predicate> ReadPredicate(const WhereQuery& query, const IndexGroup& group) {
  const std::vector<std::string> texts = query.parameters->results();
  if (query.where.empty()) {
    if (texts.empty()) return Predicate::All({});
    return UsageError("--param: expected a --where whose '?' have these values");
  }
  ASSIGN_OR_RETURN(const std::vector<Predicate::Parameter> parameters,
                   Predicate::ParametersOf(query.where));
  std::vector<PartValue> values;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i >= parameters.size()) {
      values.emplace_back(texts[i]);
      continue;
    }
    const absl::StatusOr<DataValue> value = ReadParameter(group, parameters[i], texts[i]);
    if (!value.ok()) {
      return UsageError(absl::StrCat("--param ", i + 1, ", of index '", parameters[i].index,
                                     "': ", std::string(value.status().message())));
    }
    values.emplace_back(*value);
  }
  return Predicate::Parse(query.where, values);
}

absl::StatusOr<std::string> ReadCursor(const std::string& digits) {
  const bool is_hexadecimal =
      digits.size() % 2 == 0 && std::all_of(digits.begin(), digits.end(), [](char c) {
        return absl::ascii_isxdigit(static_cast<unsigned char>(c));
      });
  if (!is_hexadecimal) {
    return UsageError("--after: expected hexadecimal digits, as printed by --cursor");
  }
  return absl::HexStringToBytes(digits);
}

void TellCursor(bool wanted, const std::string& cursor) {
  if (!wanted || cursor.empty()) return;
  std::fprintf(stderr, "cairn: more: --after=%s\n", absl::BytesToHexString(cursor).c_str());
}

absl::Status PrintRows(const WhereQuery& query, const IndexGroup& group, const Predicate& where,
                       const std::string& after) {
  if (query.order_by.size() > 1) {
    return UsageError(
        "--order-by: rows are in the order of one index, groups in that of any columns");
  }
  std::vector<std::string> indexes;
  for (const IndexGroup::Member& member : group.members()) indexes.push_back(member.name);
  ASSIGN_OR_RETURN(const std::vector<GroupOrder> order, OrderOf(query, indexes));
  WhereOptions options;
  options.order = query.reverse ? Order::kDescending : Order::kAscending;
  for (const GroupOrder& by : order) {
    options.order_by = indexes[by.column];
    options.order = by.order;
  }
  options.limit = query.limit;
  options.after = after;
  options.cancelled = &Interrupted();
  WhereResult matches;
  std::vector<ColumnValues> columns;
  // Checks the columns before anything is printed.
  RETURN_IF_ERROR(group.Columns({}, query.select, &columns));
  RETURN_IF_ERROR(group.Find(where, options, &matches));
  if (query.explain) std::fputs(matches.plan.ToString().c_str(), stderr);
  if (query.limit == 0) return absl::OkStatus();
  std::vector<std::string> names = {query.format == "json" ? "primary_key" : "primary key"};
  names.insert(names.end(), query.select.begin(), query.select.end());
  TablePrinter printer(query.format, std::move(names),
                       {/*tsv_headline=*/false, /*before_columns=*/1});
  const RowSpan rows(matches);
  for (size_t first = 0; first < rows.size(); first += kRowsTogether) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    const RowSpan some = rows.Slice(first, std::min(kRowsTogether, rows.size() - first));
    StringList keys;
    RETURN_IF_ERROR(group.PrimaryKeys(some, &keys));
    RETURN_IF_ERROR(group.Columns(some, query.select, &columns));
    std::vector<DataValue> line(1 + columns.size());
    for (size_t i = 0; i < some.size(); ++i) {
      line[0] = keys[i];
      for (size_t c = 0; c < columns.size(); ++c) line[1 + c] = columns[c].value(i);
      RETURN_IF_ERROR(printer.Print(line));
    }
  }
  RETURN_IF_ERROR(printer.End());
  TellCursor(query.tell_cursor, matches.cursor);
  return absl::OkStatus();
}

absl::Status PrintGroups(const WhereQuery& query, const IndexGroup& group, const Predicate& where,
                         const std::string& after) {
  if (!query.select.empty()) {
    return UsageError("--select is for rows; groups have the columns of --group-by");
  }
  std::vector<Aggregate> aggregates = query.aggregates.All();
  if (aggregates.empty()) aggregates.push_back(Aggregate::Count());
  std::vector<std::string> names = query.group_by;
  for (const Aggregate& aggregate : aggregates) names.push_back(NameOf(aggregate));
  GroupByOptions options;
  options.group_by = query.group_by;
  ASSIGN_OR_RETURN(options.order_by, OrderOf(query, names));
  for (size_t c = 0; c < query.group_by.size() && query.reverse; ++c) {
    options.order_by.push_back({c, Order::kDescending});
  }
  options.limit = query.limit;
  options.after = after;
  options.cancelled = &Interrupted();
  GroupByResult groups;
  RETURN_IF_ERROR(group.GroupBy(where, aggregates, options, &groups));
  if (query.explain) {
    std::fputs(groups.plan.ToString().c_str(), stderr);
    std::fprintf(stderr, "%s rows aggregated\n", WithCommas(groups.rows).c_str());
  }
  if (query.limit == 0) return absl::OkStatus();
  TablePrinter printer(query.format, std::move(names), {});
  std::vector<DataValue> line;
  for (size_t i = 0; i < groups.size; ++i) {
    line.clear();
    for (const ColumnValues& key : groups.keys) line.push_back(key.value(i));
    for (const ColumnValues& value : groups.values) line.push_back(value.value(i));
    RETURN_IF_ERROR(printer.Print(line));
  }
  RETURN_IF_ERROR(printer.End());
  TellCursor(query.tell_cursor, groups.cursor);
  return absl::OkStatus();
}

}  // namespace

void WhereQuery::AddTo(CLI::App* app) {
  app->add_option("--where", where, "Rows for which this predicate over their keys is true")
      ->type_name("PREDICATE");
  parameters =
      AddValues(app, "--param", "VALUE",
                "The value of the next ? of --where, which is never parsed as part of it: a "
                "number, or unchanged text or bytes");
  app->add_flag("--count", aggregates.count, "The number of rows");
  AddColumns(app, "--count-distinct", &aggregates.count_distinct,
             "The number of distinct values of these columns");
  aggregates.AddTo(app);
  AddColumns(app, "--group-by", &group_by,
             "One line per group of rows with equal values in these columns");
  app->add_option("--order-by", order_by,
                  "Sort rows by this index's keys, or groups by these columns")
      ->type_name("NAME [desc],…")
      ->delimiter(',');
  app->add_option("--after", after, "Resume after the cursor that --cursor printed")
      ->type_name("CURSOR");
  app->add_flag("--cursor", tell_cursor, "Print the cursor for --after on standard error");
}

absl::Status WhereQuery::Run() const {
  ASSIGN_OR_RETURN(const std::string cursor, ReadCursor(after));
  ASSIGN_OR_RETURN(const std::shared_ptr<const IndexGroup> group, OpenGroup(indexes));
  const absl::StatusOr<Predicate> predicate = ReadPredicate(*this, *group);
  if (!predicate.ok()) return AsUsageError(predicate.status());
  return AsUsageError(groups() ? PrintGroups(*this, *group, *predicate, cursor)
                               : PrintRows(*this, *group, *predicate, cursor));
}

}  // namespace cairn::tools
