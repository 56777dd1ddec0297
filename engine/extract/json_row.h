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

// A parsed JSON pointer (RFC 6901).
class JsonPointer {
 public:
  JsonPointer() = default;  // the whole document
  // InvalidArgument, with the expected and the found text: a malformed pointer.
  static absl::StatusOr<JsonPointer> Parse(std::string_view text);

 private:
  friend class JsonRow;
  struct Token {
    std::string name;
    std::optional<size_t> index;  // if the name is also an array index
  };
  std::vector<Token> tokens_;
};

// The JSON document in a row's value, parsed with simdjson. Keeps the memory of the largest
// document for later rows. Not thread-safe.
class JsonRow {
 public:
  // Parses and validates all of `json`. InvalidArgument: it is not JSON (RFC 8259, UTF-8).
  absl::Status Parse(std::string_view json);

  // Passes the values at `pointer` to the sink: one value, or each element of an array, or nothing
  // if there is no such member. Requires that the last Parse returned OK, and reads its document.
  // If several members have one name, the first one is used. Numbers become DataValues of their
  // kind, strings their unescaped UTF-8. If `type` is an integer, booleans become 0 and 1. If it is
  // text or bytes, booleans become true and false, and integers their decimal digits.
  // InvalidArgument, with the expected and the found value, for all other values: objects, arrays
  // in arrays, strings for numbers, fractions for text, integers beyond 64 bits.
  absl::Status Values(const JsonPointer& pointer, DataType type, KeySink* sink) const;

 private:
  // Parses a copy of `json`, since simdjson reads past the end of its input.
  simdjson::error_code ParseCopy(std::string_view json);

  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
  std::unique_ptr<uint8_t[]> copy_;
  size_t copy_capacity_ = 0;
  std::string rewritten_;
  bool has_big_integers_ = false;  // in root_, {} replaces each integer beyond 64 bits
};

}  // namespace cairn
