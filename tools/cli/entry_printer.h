#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "tools/cli/output.h"

namespace cairn::tools {

// How a query's entries are written.
class EntryPrinter {
 public:
  virtual ~EntryPrinter() = default;

  // One entry: key i of `keys`, its row's primary key and, where values were asked for, the row's
  // value. DataLoss where the key is no encoding of the codec's.
  virtual absl::Status Print(const KeyColumn& keys, size_t i, std::string_view primary_key,
                             const std::string_view* value) = 0;
  // After the last entry.
  virtual void End() {}

  // `format` is text (aligned for people), tsv (for scripts) or json (an object a line). What is
  // given must outlive the printer.
  static std::unique_ptr<EntryPrinter> Make(const std::string& format, const KeyCodec& codec,
                                            bool with_values, Output* output);
};

}  // namespace cairn::tools
