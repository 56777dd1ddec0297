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

// The position of a row without a value for a key part.
enum class NullPolicy : uint8_t {
  kSkip,   // not at all: the row has no entry
  kFirst,  // before all values of the part
  kLast,   // after all values of the part
};

// Maps logical keys of one or more typed parts to physical keys and back. The order is preserved: a
// < b as tuples of values if and only if Encode(a) < Encode(b). Immutable and thread-safe.
//
// The physical type follows from the parts and the null policy. If all parts have a fixed width,
// the type is u32 for at most 4 bytes in total, u64 for at most 8 bytes, and otherwise bytes. With
// kFirst or kLast, a byte before each part marks nulls. In a composite key, integers are
// big-endian, with the sign bit of signed ones flipped. Floating-point numbers are in IEEE 754
// total order (-0 before +0), with all NaNs equal and last. Text and bytes are stored as they are
// in the last part. In earlier parts, a zero byte becomes 00 FF, and 00 00 ends the part. Text and
// bytes differ only in name: both compare as with memcmp.
class KeyCodec {
 public:
  // Creates a codec. InvalidArgument if there are no parts or more than 16.
  static absl::StatusOr<KeyCodec> Create(absl::Span<const DataType> parts,
                                         NullPolicy nulls = NullPolicy::kSkip);

  // Return the physical type of the keys, the types of the parts, and the position of nulls.
  PhysicalType kind() const { return kind_; }
  absl::Span<const DataType> parts() const { return parts_; }
  NullPolicy nulls() const { return nulls_; }

  // Appends the key of `values`, one value per part. A float type accepts an integer only if it is
  // exactly representable. An integer type accepts a float only if it is an integer in range. A
  // double is rounded to the nearest f32. Errors: InvalidArgument, naming the part, if a value does
  // not fit its type, for a null with kSkip, or if the key would exceed kMaxKeyBytes. On error
  // nothing is appended.
  absl::Status Append(absl::Span<const DataValue> values, EncodedKeys* keys) const;

  // Appends the keys of columns, one column per part, all of the same size: key i consists of value
  // i of each column. Much faster than one Append per key. A column must have exactly the type of
  // its part; text and bytes take string_views. Errors: InvalidArgument, naming the part, and the
  // position if a value is the cause (null with kSkip, too long). On error nothing is appended.
  absl::Status AppendColumns(absl::Span<const ColumnSpan> columns, EncodedKeys* keys) const;

  // Appends to `lower` and `upper` the half-open physical range of all keys whose leading parts
  // equal `values`: at least one value, at most one per part. With `last_is_prefix`, the last value
  // is a prefix of a text or bytes part. Sets *upper_open to true if the range has no upper end;
  // `upper` then gets a placeholder. InvalidArgument, naming the part.
  absl::Status AppendPrefixRange(absl::Span<const DataValue> values, bool last_is_prefix,
                                 EncodedKeys* lower, EncodedKeys* upper, bool* upper_open) const;

  // Parses a human-readable key and appends it. Parts are separated by commas; numbers are decimal.
  // In text and bytes, \xHH is any byte, so \x2c is a comma in a composite key; \N is null. Errors:
  // InvalidArgument, naming the part and the expected value.
  absl::Status Parse(std::string_view text, EncodedKeys* keys) const;
  // Parses a prefix of a key and appends its range as AppendPrefixRange does. A prefix consists of
  // leading parts; the last one may be a prefix of text or bytes. In a composite key, a trailing
  // comma makes the last part complete: "de" matches "de…,…", "de," matches only "de,…".
  absl::Status ParsePrefix(std::string_view text, EncodedKeys* lower, EncodedKeys* upper,
                           bool* upper_open) const;

  // Returns key i of `keys` as text that Parse accepts. Numbers are decimal, in the shortest form
  // that round-trips, or nan, inf, -inf. In text and bytes, every byte outside '!' … '~', the
  // backslash and, in a composite key, the comma are lowercase \xHH. Errors: DataLoss if the key is
  // not an encoding of this codec; OutOfRange if i >= keys.size().
  absl::StatusOr<std::string> Format(const EncodedKeys& keys, size_t i) const;

  // Sets *values to the parts of key i. String values point into *scratch, which receives the
  // unescaped bytes. Errors: those of Format.
  absl::Status Decode(const EncodedKeys& keys, size_t i, std::vector<DataValue>* values,
                      std::string* scratch) const;

  // The maximum size of a physical key in bytes.
  static constexpr size_t kMaxKeyBytes = size_t{1} << 24;

 private:
  KeyCodec() = default;

  std::vector<DataType> parts_;
  NullPolicy nulls_ = NullPolicy::kSkip;
  PhysicalType kind_ = PhysicalType::kU32;
};

// Order-preserving maps for callers that create the physical keys of single-part indexes
// themselves: a < b if and only if OrderPreserving(a) < OrderPreserving(b). Floating-point numbers
// are in IEEE 754 total order, with all NaNs equal and last.
uint32_t OrderPreserving(int32_t value);
uint64_t OrderPreserving(int64_t value);
uint32_t OrderPreserving(float value);
uint64_t OrderPreserving(double value);

}  // namespace cairn
