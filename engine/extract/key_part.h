#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/index_spec.h"

namespace cairn {

// The properties of one part that the parser of specs, their text form and RowExtractor share.

// The maximum length of a string in a spec (a pointer, a column, a name) in bytes. It keeps every
// spec's canonical text within kMaxSpecBytes.
inline constexpr size_t kMaxSpecString = 512;
inline constexpr size_t kMaxSpecName = 255;
inline constexpr size_t kMaxSpecBytes = size_t{256} << 10;
inline constexpr size_t kMaxSpecParts = 16;
inline constexpr size_t kMaxIncludedColumns = 64;

// Returns whether the source has raw bytes, in which numbers are binary.
bool IsRaw(KeySource::Kind kind);

// Returns whether the part's text includes a byte order: a number of more than one byte from raw
// bytes.
bool SaysByteOrder(const KeyPart& part);

// Returns whether `c` may be in the name of an index or a column.
bool IsNameByte(char c);

// InvalidArgument, with the expected and the found text: no row could satisfy the part. Its range
// may be wider or narrower than its number, its JSON pointer malformed, or its extractor unnamed.
absl::Status CheckPart(const KeyPart& part);

// Returns the part as spec text, such as value[8:4]:u32le.
std::string PartText(const KeyPart& part);

// Returns `text` in single quotes, escaped as in specs.
std::string QuotedString(std::string_view text);

// Splits a JSON pointer (RFC 6901) into its reference tokens, with ~0 and ~1 unescaped.
// InvalidArgument, with the expected and the found text: it is malformed.
absl::Status SplitJsonPointer(std::string_view pointer, std::vector<std::string>* tokens);

}  // namespace cairn
