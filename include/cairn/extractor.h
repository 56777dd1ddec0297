#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/key_codec.h"

namespace cairn {

// A column of a wide-column entity. A plain value is the only column of its row and has an empty
// name. Owns nothing.
struct ColumnView {
  std::string_view name;
  std::string_view value;
};

// One row as the argument of an extractor. Valid only during the call.
struct RowView {
  std::string_view primary_key;
  std::string_view value;                // the default column if the row is a wide-column entity
  absl::Span<const ColumnView> columns;  // empty unless the row is a wide-column entity
};

// Receives the values that an extractor finds in a row for one key part or column.
class KeySink {
 public:
  virtual ~KeySink() = default;
  // Adds one value; std::monostate is null. A row without any value is treated as if it had one
  // null. The bytes of a string_view need to live only until Add returns.
  virtual void Add(const DataValue& value) = 0;
};

// User code that extracts values from rows that the built-in sources cannot extract. A spec refers
// to it as custom('name'). Extract must be a pure function of the row, because Fetch and Verify
// call it again. It must be thread-safe.
class KeyExtractor {
 public:
  virtual ~KeyExtractor() = default;
  // Adds the values of the row to `sink`: none, one or several. Several values make the index
  // multi-valued. If the result is not OK, the row cannot be read and ErrorPolicy applies; the
  // message is passed on.
  virtual absl::Status Extract(const RowView& row, KeySink* sink) const = 0;

  // The version of the behavior of Extract. A build stores the versions of its extractors in the
  // index. If a version has changed, CatchUp fails until the index is rebuilt. Return another
  // number in each release in which Extract returns different values for the same row.
  virtual uint64_t Version() const { return 0; }
};

// Registers an extractor under a name for the life of the process. Errors: AlreadyExists if the
// name is taken; InvalidArgument if `name` is empty or `extractor` is null. Thread-safe.
absl::Status RegisterExtractor(std::string name, std::shared_ptr<const KeyExtractor> extractor);

// Returns the extractor registered under `name`. Errors: NotFound, listing the registered names.
// Thread-safe.
absl::StatusOr<std::shared_ptr<const KeyExtractor>> FindExtractor(std::string_view name);

}  // namespace cairn
