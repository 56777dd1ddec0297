#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/extractor.h"
#include "simdjson.h"

namespace cairn {

// A JSON pointer (RFC 6901), taken apart.
class JsonPointer {
 public:
  JsonPointer() = default;  // the whole document
  // InvalidArgument, with what was expected and found, for a malformed pointer.
  static absl::StatusOr<JsonPointer> Parse(std::string_view text);

 private:
  friend class JsonRow;
  struct Token {
    std::string name;
    std::optional<size_t> index;  // where the name is also an array index
  };
  std::vector<Token> tokens_;
};

// The JSON document that a row's value is, parsed with simdjson. Keeps its memory between rows, as
// much as the largest one took. Not thread-safe.
class JsonRow {
 public:
  // Parses `json`, and checks all of it. InvalidArgument where it is not JSON (RFC 8259, UTF-8).
  absl::Status Parse(std::string_view json);

  // Gives the sink the values at `pointer` in the document of the last Parse, which must have been
  // OK: the value there, or each element of an array, or nothing where there is no such member. The
  // first of several members of one name counts. Numbers become DataValues of their kind, strings
  // their unescaped UTF-8; where `type` is an integer, booleans become 0 and 1; where it is text or
  // bytes, booleans become true and false, and integers their decimal digits. InvalidArgument,
  // with what was expected and found, for other values: objects, arrays in arrays, strings for
  // numbers, fractions for text, integers beyond 64 bits.
  absl::Status Values(const JsonPointer& pointer, DataType type, KeySink* sink) const;

 private:
  // Copies `json` behind which simdjson reads ahead, and parses the copy.
  simdjson::error_code ParseCopy(std::string_view json);

  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
  std::unique_ptr<uint8_t[]> copy_;
  size_t copy_capacity_ = 0;
  std::string rewritten_;
  bool has_big_integers_ = false;  // {} stands in root_ for each integer beyond 64 bits
};

}  // namespace cairn
