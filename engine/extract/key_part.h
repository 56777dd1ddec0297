#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/index_spec.h"

namespace cairn {

// What the parser of specs, their text form and RowExtractor know together about one part.

// The longest string in a spec (a pointer, a column, a name) in bytes, so that every spec's
// canonical text stays within kMaxSpecBytes.
inline constexpr size_t kMaxSpecString = 512;
inline constexpr size_t kMaxSpecName = 255;
inline constexpr size_t kMaxSpecBytes = size_t{256} << 10;
inline constexpr size_t kMaxSpecParts = 16;
inline constexpr size_t kMaxIncludedColumns = 64;

// Whether the source gives raw bytes, in which numbers are binary.
bool IsRaw(KeySource::Kind kind);

// Whether the part's text says a byte order: a number of more than one byte from raw bytes.
bool SaysByteOrder(const KeyPart& part);

// Whether `c` may stand in the name of an index or a column.
bool IsNameByte(char c);

// InvalidArgument, with what was expected and found, for a part that no row could satisfy: a range
// that is not as wide as its number, a malformed JSON pointer, an extractor without a name.
absl::Status CheckPart(const KeyPart& part);

// The part as a spec holds it: value[8:4]:u32le
std::string PartText(const KeyPart& part);

// `text` between single quotes, escaped as specs do.
std::string QuotedString(std::string_view text);

// The reference tokens of a JSON pointer (RFC 6901), ~0 and ~1 unescaped. InvalidArgument, with
// what was expected and found, for a malformed one.
absl::Status SplitJsonPointer(std::string_view pointer, std::vector<std::string>* tokens);

}  // namespace cairn
