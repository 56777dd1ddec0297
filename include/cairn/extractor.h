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

// A wide-column entity's column; a plain value is the one column with an empty name. Owns nothing.
struct ColumnView {
  std::string_view name;
  std::string_view value;
};

// One row as an extractor sees it; valid during the call only.
struct RowView {
  std::string_view primary_key;
  std::string_view value;                // of the default column where the row is an entity
  absl::Span<const ColumnView> columns;  // empty unless the row is a wide-column entity
};

// Takes the values of one part that an extractor finds in a row.
class KeySink {
 public:
  virtual ~KeySink() = default;
  // Adds one value; std::monostate for null. Adding none at all is the same as one null. A
  // string_view's bytes need to live only until Add returns.
  virtual void Add(const DataValue& value) = 0;
};

// User code that takes secondary-key values from rows, for what the built-in sources cannot
// express. Named in a spec as custom('name'). Extract must be a pure function of the row, since
// Fetch and Verify call it again, and safe to call from several threads at a time.
class KeyExtractor {
 public:
  virtual ~KeyExtractor() = default;
  // Gives the sink the row's values: none, one, or several (the index is then multi-valued).
  // A Status other than OK makes it a row that cannot be read (ErrorPolicy); its message is passed
  // on.
  virtual absl::Status Extract(const RowView& row, KeySink* sink) const = 0;

  // The version of what Extract does. An index stores the versions of its extractors when it is
  // built, and refuses to catch up, until it is rebuilt, if one of them is another. A release in
  // which Extract gives other values for the same row must return another number.
  virtual uint64_t Version() const { return 0; }
};

// Registers an extractor under a name for the life of the process. AlreadyExists for a taken name,
// InvalidArgument for an empty one. Thread-safe.
absl::Status RegisterExtractor(std::string name, std::shared_ptr<const KeyExtractor> extractor);

// The extractor registered under `name`; NotFound, listing the names that are known. Thread-safe.
absl::StatusOr<std::shared_ptr<const KeyExtractor>> FindExtractor(std::string_view name);

}  // namespace cairn
