#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The text of manifests: lines "key value", and a last line with a checksum of all lines before it.
namespace cairn {

// Escapes a value for one line: backslashes and bytes outside ' ' ... '~' become \xHH.
std::string EscapeLine(std::string_view value);
// False if `text` is not an output of EscapeLine.
bool UnescapeLine(std::string_view text, std::string* value);

// Decimal digits without a leading zero.
bool ParseDecimal(std::string_view text, uint64_t* number);
// Exactly 16 lower-case digits.
bool ParseHex16(std::string_view text, uint64_t* number);
// "major.minor"
bool ParseVersion(std::string_view text, uint64_t* major_version, uint64_t* minor_version);

// Takes the text up to the first space, and the space. Takes everything if there is none.
std::string_view TakeWord(std::string_view* text);
// Takes the text up to the first line end, and the line end. False if there is none.
bool TakeLine(std::string_view* text, std::string_view* line);

// Appends a line with the checksum of `text`.
void AppendChecksumLine(std::string* text);

// Verifies the last line's checksum; sets *body to the lines before it. DataLoss, with `path`: the
// checksum is missing or wrong, or the text has more than `most` bytes.
absl::Status TakeChecksumLine(std::string_view text, std::string_view path, uint64_t most,
                              std::string_view* body);

// DataLoss for line `line`, counted from 1, of the manifest in `path`.
absl::Status DamagedLine(std::string_view path, size_t line, std::string_view what);
// As above, with the value that was found.
absl::Status DamagedLine(std::string_view path, size_t line, std::string_view key,
                         std::string_view value);

// A kind of manifest; its first line is "key major.minor".
struct ManifestFormat {
  std::string_view key;
  uint64_t major_version;
  uint64_t minor_version;
  uint64_t max_bytes;
};

enum class ManifestLine : uint8_t { kRead, kUnknownKey, kMalformed };

// Reads the manifest in `path`. read(key, value) takes each line after the first. check() returns
// an error if the lines are inconsistent, and write() formats what was read. Keys that a newer
// minor version added are ignored. Errors: DataLoss: a line is malformed, check fails, or write
// returns other text; FailedPrecondition: another major version.
absl::Status ReadManifest(
    std::string_view text, std::string_view path, const ManifestFormat& format,
    absl::FunctionRef<ManifestLine(std::string_view key, std::string_view value)> read,
    absl::FunctionRef<absl::Status()> check,
    absl::FunctionRef<absl::StatusOr<std::string>()> write);

}  // namespace cairn
