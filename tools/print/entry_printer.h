#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "tools/print/output.h"

namespace cairn::tools {

// One entry of a query.
struct PrintedEntry {
  const EncodedKeys& keys;
  size_t i;  // the index of its key in `keys`
  std::string_view primary_key;
  absl::Span<const DataValue> columns;    // the selected columns of its row
  std::optional<std::string_view> value;  // its row's, if values are printed
};

// Names of a JSON object's members, and their nesting.
struct EntryJsonNames {
  const char* primary_key = "primary_key";
  size_t beside = 0;  // this many columns, the first, are members of the object, not of "columns"
};

// Prints the entries of a query.
class EntryPrinter {
 public:
  virtual ~EntryPrinter() = default;

  // Errors: DataLoss if the codec cannot decode the entry's key.
  virtual absl::Status Print(const PrintedEntry& entry) = 0;
  // Must be called after the last entry.
  virtual void End() {}

  // `format` is text (human-readable, aligned), tsv (for scripts) or json (one object per
  // line); `columns` are the names of the entries' columns. All arguments must outlive the printer.
  static std::unique_ptr<EntryPrinter> Make(const std::string& format, const KeyCodec& codec,
                                            absl::Span<const std::string> columns, bool with_values,
                                            Output* output, const EntryJsonNames& json = {});
};

}  // namespace cairn::tools
