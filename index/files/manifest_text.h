#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// The text of manifests: lines "key value", the last of them a checksum of all before it.
namespace cairn {

// A value on one line: bytes outside ' ' ... '~', and the backslash, are \xHH.
std::string EscapeLine(std::string_view value);
// False where EscapeLine would not have written `text`.
bool UnescapeLine(std::string_view text, std::string* value);

// Decimal digits without a leading zero.
bool ParseDecimal(std::string_view text, uint64_t* number);
// Exactly 16 lower-case digits.
bool ParseHex16(std::string_view text, uint64_t* number);
// "major.minor"
bool ParseVersion(std::string_view text, uint64_t* major_version, uint64_t* minor_version);

// Up to the first space, which is taken as well; everything where there is none.
std::string_view TakeWord(std::string_view* text);
// Up to the first line end, which is taken as well. False where there is none.
bool TakeLine(std::string_view* text, std::string_view* line);

// Appends the line with the checksum of all that `text` has.
void AppendChecksumLine(std::string* text);
// Compares the last line's checksum; *body gets the lines before it. DataLoss, naming `path`, where
// it is not there or another, or where the text has more than `most` bytes.
absl::Status TakeChecksumLine(std::string_view text, std::string_view path, uint64_t most,
                              std::string_view* body);

// DataLoss for line `line`, counted from 1, of the manifest in `path`.
absl::Status DamagedLine(std::string_view path, size_t line, std::string_view what);
// The same, quoting what stands there.
absl::Status DamagedLine(std::string_view path, size_t line, std::string_view key,
                         std::string_view value);

}  // namespace cairn
