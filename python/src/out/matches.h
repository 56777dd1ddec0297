#pragma once

// The result of find, scan and fetch: cairn.FindResult.

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "python/src/out/column.h"

namespace cairn::python {

// The rows that each query of a batch found. Immutable once Python has it.
class FoundRows {
 public:
  struct Contents {
    FindResult matches;
    StringList primary_keys, values;
    uint64_t stale = 0;
  };

  // The rows of a sharded index are `wide`: GlobalRowIds.
  FoundRows(const KeyCodec& codec, bool wide)
      : contents_(std::make_shared<Contents>()), codec_(codec), wide_(wide) {}

  Contents* contents() { return contents_.get(); }
  void set_with_keys() { with_keys_ = true; }
  void set_with_primary_keys() { with_primary_keys_ = true; }
  void set_with_values() { with_values_ = true; }
  void set_columns(std::vector<std::string> names) { column_names_ = std::move(names); }

  size_t size() const { return contents_->matches.size(); }
  nb::object Offsets();
  nb::object RowIds();
  nb::object RowsOf(Py_ssize_t query);
  std::optional<SharedColumn> Keys();
  std::optional<SharedColumn> PrimaryKeys() const;
  std::optional<SharedColumn> Values() const;
  // The requested included columns, by name.
  Fields Columns() const;
  nb::list Cursors() const { return BytesOf(contents_->matches.cursors); }
  uint64_t stale() const { return contents_->stale; }
  // A struct per match: query, row_id, and, if present, key, primary_key, included columns and
  // value.
  SharedColumn Table();

 private:
  // All rows, created by the first call, which holds the GIL.
  const SharedColumn& Rows();

  std::shared_ptr<Contents> contents_;
  KeyCodec codec_;
  bool wide_;
  std::optional<SharedColumn> rows_;
  std::vector<std::string> column_names_;
  bool with_keys_ = false, with_primary_keys_ = false, with_values_ = false;
  nb::object offsets_, row_ids_;  // created on first use
  std::optional<SharedColumn> keys_;
};

void BindMatches(nb::module_& module);

}  // namespace cairn::python
