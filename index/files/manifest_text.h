#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

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

// A kind of manifest: its first line is "key major.minor".
struct ManifestFormat {
  std::string_view key;
  uint64_t major_version;
  uint64_t minor_version;
  uint64_t max_bytes;
};

enum class ManifestLine : uint8_t { kRead, kUnknownKey, kMalformed };

// Reads the manifest in `path`: read(key, value) takes each line behind the first, check() says
// what is wrong with them together, and write() gives the text of what was read. Keys are passed
// over that a newer minor version added. DataLoss where a line is malformed, check fails or write
// gives other text; FailedPrecondition where the major version is another.
absl::Status ReadManifest(
    std::string_view text, std::string_view path, const ManifestFormat& format,
    absl::FunctionRef<ManifestLine(std::string_view key, std::string_view value)> read,
    absl::FunctionRef<absl::Status()> check,
    absl::FunctionRef<absl::StatusOr<std::string>()> write);

}  // namespace cairn
