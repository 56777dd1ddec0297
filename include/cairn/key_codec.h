#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// Where a row without a value for a part is in the index.
enum class NullPolicy : uint8_t {
  kSkip,   // nowhere: the row gives no entry
  kFirst,  // before every value of that part
  kLast,   // after every value of that part
};

// Maps logical keys of one or several typed parts to physical keys and back, order preserved:
// a < b as tuples of values exactly when Encode(a) < Encode(b). Immutable and thread-safe.
//
// The physical kind follows from the parts alone. Integers are big-endian inside a composite,
// signed ones with the sign bit flipped; floats are in IEEE 754 total order (-0 before +0) with
// every NaN equal and last; text and bytes are raw in the last part, and in earlier ones a zero
// byte becomes 00 FF and 00 00 ends the part. Under kFirst or kLast each part is led by a byte that
// says null or not. If all parts are fixed-width and together at most 4 (8) bytes the kind is u32
// (u64), else bytes. Text and bytes differ only in name: both are compared as by memcmp.
class KeyCodec {
 public:
  // InvalidArgument without a part or with more than 16.
  static absl::StatusOr<KeyCodec> Create(absl::Span<const DataType> parts,
                                         NullPolicy nulls = NullPolicy::kSkip);

  PhysicalType kind() const { return kind_; }
  absl::Span<const DataType> parts() const { return parts_; }
  NullPolicy nulls() const { return nulls_; }

  // Appends the key of `values`, one value a part. InvalidArgument, naming the part, where a value
  // does not fit its part's type (a number out of range, text for a number, null under kSkip) or
  // the key would exceed kMaxKeyBytes. Integers are accepted for floats only if exact, and the
  // reverse; a double for f32 is rounded to nearest. Nothing is appended on an error.
  absl::Status Append(absl::Span<const DataValue> values, EncodedKeys* keys) const;

  // Appends the keys of columns of values, one column a part, all of one size: key i is that of
  // value i of each. What Append does key by key, many times as fast. A column has exactly its
  // part's type; string_views are for text and bytes. InvalidArgument, naming the part and, where a
  // value does not fit (null under kSkip, too long), its position. Nothing is appended then.
  absl::Status AppendColumns(absl::Span<const ColumnSpan> columns, EncodedKeys* keys) const;

  // Appends to `lower` and `upper` the half-open physical range of all keys whose leading parts
  // equal `values` (at least one, at most all), the last of them a prefix if `last_is_prefix` (text
  // and bytes only). *upper_open is set where the range has no upper end (`upper` then gets a
  // placeholder).
  absl::Status AppendPrefixRange(absl::Span<const DataValue> values, bool last_is_prefix,
                                 EncodedKeys* lower, EncodedKeys* upper, bool* upper_open) const;

  // Reads a key as people write it, and appends it: parts separated by commas; numbers in decimal;
  // in text and bytes \xHH for any byte, so \x2c for a comma inside a composite; \N for null.
  // InvalidArgument, naming the part and what was expected.
  absl::Status Parse(std::string_view text, EncodedKeys* keys) const;
  // Likewise for a prefix: leading parts, the last of which may be a prefix of text or bytes. In a
  // composite a comma at the end closes the last part, which is then no prefix: "de" stands for
  // "de…,…", "de," for "de,…".
  absl::Status ParsePrefix(std::string_view text, EncodedKeys* lower, EncodedKeys* upper,
                           bool* upper_open) const;

  // Writes key i of `keys` so that Parse reads it back: numbers in decimal (shortest that
  // round-trips; nan, inf, -inf), in text and bytes every byte outside '!' … '~', the backslash,
  // and in a composite the comma, as lower-case \xHH. DataLoss where the bytes are no encoding of
  // this codec's.
  absl::StatusOr<std::string> Format(const EncodedKeys& keys, size_t i) const;

  // Keys as logical values again; string values are unescaped into *scratch, which they point to.
  absl::Status Decode(const EncodedKeys& keys, size_t i, std::vector<DataValue>* values,
                      std::string* scratch) const;

  // The longest physical key in bytes.
  static constexpr size_t kMaxKeyBytes = size_t{1} << 24;

 private:
  KeyCodec() = default;

  std::vector<DataType> parts_;
  NullPolicy nulls_ = NullPolicy::kSkip;
  PhysicalType kind_ = PhysicalType::kU32;
};

// Order-preserving maps for callers who make physical keys of single-part indexes themselves:
// a < b exactly when OrderPreserving(a) < OrderPreserving(b); floats in IEEE 754 total order, with
// every NaN equal and last.
uint32_t OrderPreserving(int32_t value);
uint64_t OrderPreserving(int64_t value);
uint32_t OrderPreserving(float value);
uint64_t OrderPreserving(double value);

}  // namespace cairn
