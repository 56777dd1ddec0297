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
  size_t i;  // its key among these
  std::string_view primary_key;
  absl::Span<const DataValue> columns;    // of its row, those that were selected
  std::optional<std::string_view> value;  // its row's, where values were asked for
};

// Names of a JSON object's members.
struct EntryJsonNames {
  const char* primary_key = "primary_key";
  size_t beside = 0;  // the first columns, which are members of the object and not of "columns"
};

// How a query's entries are written.
class EntryPrinter {
 public:
  virtual ~EntryPrinter() = default;

  // DataLoss where the entry's key is no encoding of the codec's.
  virtual absl::Status Print(const PrintedEntry& entry) = 0;
  // After the last entry.
  virtual void End() {}

  // `format` is text (human-readable, aligned), tsv (for scripts) or json (an object a line);
  // `columns` are the names of those that entries have. All arguments must outlive the printer.
  static std::unique_ptr<EntryPrinter> Make(const std::string& format, const KeyCodec& codec,
                                            absl::Span<const std::string> columns, bool with_values,
                                            Output* output, const EntryJsonNames& json = {});
};

}  // namespace cairn::tools
