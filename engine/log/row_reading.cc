#include "engine/log/row_reading.h"

#include <memory>
#include <set>

#include "absl/strings/str_format.h"
#include "cairn/extractor.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "rocksdb/merge_operator.h"

namespace cairn {

absl::StatusOr<std::string> RowReading(const IndexSpec& spec, rocksdb::DB* db,
                                       rocksdb::ColumnFamilyHandle* column_family) {
  const std::shared_ptr<rocksdb::MergeOperator> merge =
      db->GetOptions(column_family).merge_operator;
  std::string reading =
      absl::StrFormat("merge operator %s", Quoted(merge == nullptr ? "" : merge->Name()));
  std::set<std::string> extractors;
  for (const KeyPart& part : spec.parts) {
    if (part.source.kind == KeySource::Kind::kCustom) extractors.insert(part.source.name);
  }
  for (const IncludedColumn& column : spec.include) {
    if (column.value.source.kind == KeySource::Kind::kCustom) {
      extractors.insert(column.value.source.name);
    }
  }
  for (const std::string& name : extractors) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const KeyExtractor> extractor, FindExtractor(name));
    absl::StrAppendFormat(&reading, ", extractor %s version %d", Quoted(name),
                          extractor->Version());
  }
  return reading;
}

absl::Status CheckRowReading(const std::string& stored, const IndexSpec& spec, rocksdb::DB* db,
                             rocksdb::ColumnFamilyHandle* column_family) {
  if (stored.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string now, RowReading(spec, db, column_family));
  if (now == stored) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("column family '%s' of database '%s': the index was built with %s, but "
                      "rows are now read with %s; rebuild the index",
                      column_family->GetName(), db->GetName(), stored, now));
}

}  // namespace cairn
