#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {

using Strings = std::vector<std::string>;

inline IndexSpec Spec(std::string_view text) {
  return RequireOk(IndexSpec::Parse(text));
}

inline std::unique_ptr<SecondaryIndex> Build(TestDatabase& db, std::string_view spec,
                                             const BuildOptions& options = {}) {
  return RequireOk(SecondaryIndex::Build(*db.Source(), Spec(spec), db.Beside("index"), options));
}

inline Strings PrimaryKeys(const SecondaryIndex& index, RowSpan rows) {
  StringList column;
  RequireOk(index.PrimaryKeys(rows, &column));
  Strings keys;
  for (size_t i = 0; i < column.size(); ++i) keys.emplace_back(column[i]);
  return keys;
}

// All entries as "key=primary key", in index order.
inline Strings All(const SecondaryIndex& index) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &matches, options));
  const Strings primary_keys = PrimaryKeys(index, matches);
  Strings entries;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    entries.push_back(*index.codec().Format(matches.keys, i) + "=" + primary_keys[i]);
  }
  return entries;
}

}  // namespace cairn
