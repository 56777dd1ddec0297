#include "index/files/manifest.h"

#include <charconv>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/files/manifest_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr uint64_t kMajorVersion = 2;  // 1: without an anchor
// 0: without tables, logs and reading; 1: without logs. The lowest possible version is written.
constexpr uint64_t kMinorVersion = 2;
constexpr std::string_view kFirstKey = "cairn-manifest";
constexpr int kFileNumberDigits = 6;

bool IsLowerCase(std::string_view text) {
  for (const char c : text) {
    if (c < 'a' || c > 'z') return false;
  }
  return !text.empty();
}

// Temporary files have names of the same form, but never outlive their writer.
bool IsLiveFileName(std::string_view name) {
  std::string_view prefix, extension;
  uint64_t number = 0;
  return ParseIndexFileName(name, &prefix, &number, &extension) && extension != "tmp";
}

bool IsCountName(std::string_view name) {
  for (const char c : name) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word && c != '_') return false;
  }
  return !name.empty();
}

// The fields that occur exactly once in every manifest.
class Reader {
 public:
  explicit Reader(Manifest* manifest) : manifest_(manifest) {}

  ManifestLine ReadLine(std::string_view key, std::string_view value) {
    if (key == "count") return Check(ReadCount(value));
    if (key == "file") return Check(ReadFile(value));
    if (uint64_t* number = NumberField(key)) return Check(Once(key) && ParseDecimal(value, number));
    if (std::string* text = TextField(key)) return Check(Once(key) && UnescapeLine(value, text));
    return ManifestLine::kUnknownKey;
  }

  absl::Status CheckComplete() const {
    const size_t optional = seen_.count("tables") + seen_.count("logs") + seen_.count("reading");
    return seen_.size() == 9 + optional ? absl::OkStatus()
                                        : absl::DataLossError("lines are missing");
  }

 private:
  static ManifestLine Check(bool good) {
    return good ? ManifestLine::kRead : ManifestLine::kMalformed;
  }
  bool Once(std::string_view key) { return seen_.insert(key).second; }

  uint64_t* NumberField(std::string_view key) {
    if (key == "version") return &manifest_->version;
    if (key == "next_file_number") return &manifest_->next_file_number;
    if (key == "sequence") return &manifest_->sequence;
    if (key == "rows") return &manifest_->rows;
    if (key == "entries") return &manifest_->entries;
    return nullptr;
  }

  std::string* TextField(std::string_view key) {
    if (key == "spec") return &manifest_->spec;
    if (key == "database_id") return &manifest_->database_id;
    if (key == "column_family") return &manifest_->column_family;
    if (key == "anchor") return &manifest_->anchor;
    if (key == "tables") return &manifest_->tables;
    if (key == "logs") return &manifest_->logs;
    if (key == "reading") return &manifest_->reading;
    return nullptr;
  }

  bool ReadCount(std::string_view value) {
    const std::string_view name = TakeWord(&value);
    uint64_t count = 0;
    return IsCountName(name) && ParseDecimal(value, &count) &&
           manifest_->counts.emplace(name, count).second;
  }

  bool ReadFile(std::string_view value) {
    ManifestFile file;
    file.name = TakeWord(&value);
    const std::string_view size = TakeWord(&value);
    if (!IsLiveFileName(file.name)) return false;
    if (!ParseDecimal(size, &file.size) || !ParseHex16(value, &file.header_checksum)) {
      return false;
    }
    if (!files_.insert(file.name).second) return false;
    manifest_->files.push_back(std::move(file));
    return true;
  }

  Manifest* manifest_;
  std::set<std::string_view> seen_;
  std::set<std::string> files_;
};

}  // namespace

const ManifestFile* Manifest::FindFile(std::string_view prefix) const {
  for (const ManifestFile& file : files) {
    std::string_view name_prefix, extension;
    uint64_t number = 0;
    if (ParseIndexFileName(file.name, &name_prefix, &number, &extension) && name_prefix == prefix) {
      return &file;
    }
  }
  return nullptr;
}

std::string IndexFileName(std::string_view prefix, uint64_t number, std::string_view extension) {
  return absl::StrFormat("%s-%0*d.%s", prefix, kFileNumberDigits, number, extension);
}

bool ParseIndexFileName(std::string_view name, std::string_view* prefix, uint64_t* number,
                        std::string_view* extension) {
  const size_t dash = name.find('-');
  const size_t dot = name.find('.');
  if (dash == std::string_view::npos || dot == std::string_view::npos || dot < dash) return false;
  *prefix = name.substr(0, dash);
  *extension = name.substr(dot + 1);
  const std::string_view digits = name.substr(dash + 1, dot - dash - 1);
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, *number);
  return error == std::errc() && stop == end && IsLowerCase(*prefix) && IsLowerCase(*extension) &&
         IndexFileName(*prefix, *number, *extension) == name;
}

absl::StatusOr<std::string> FormatManifest(const Manifest& manifest) {
  const bool is_newer = !manifest.tables.empty() || !manifest.reading.empty();
  const uint64_t minor = !manifest.logs.empty() ? kMinorVersion : is_newer ? 1 : 0;
  std::string text = absl::StrFormat("%s %d.%d\n", kFirstKey, kMajorVersion, minor);
  absl::StrAppendFormat(&text, "version %d\n", manifest.version);
  absl::StrAppendFormat(&text, "next_file_number %d\n", manifest.next_file_number);
  absl::StrAppendFormat(&text, "spec %s\n", EscapeLine(manifest.spec));
  absl::StrAppendFormat(&text, "database_id %s\n", EscapeLine(manifest.database_id));
  absl::StrAppendFormat(&text, "column_family %s\n", EscapeLine(manifest.column_family));
  absl::StrAppendFormat(&text, "anchor %s\n", EscapeLine(manifest.anchor));
  if (!manifest.tables.empty()) {
    absl::StrAppendFormat(&text, "tables %s\n", EscapeLine(manifest.tables));
  }
  if (!manifest.logs.empty()) {
    absl::StrAppendFormat(&text, "logs %s\n", EscapeLine(manifest.logs));
  }
  if (!manifest.reading.empty()) {
    absl::StrAppendFormat(&text, "reading %s\n", EscapeLine(manifest.reading));
  }
  absl::StrAppendFormat(&text, "sequence %d\n", manifest.sequence);
  absl::StrAppendFormat(&text, "rows %d\n", manifest.rows);
  absl::StrAppendFormat(&text, "entries %d\n", manifest.entries);
  for (const auto& [name, count] : manifest.counts) {
    if (!IsCountName(name)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "count '%s': expected a name of letters, digits and '_'", EscapeLine(name)));
    }
    absl::StrAppendFormat(&text, "count %s %d\n", name, count);
  }
  std::set<std::string_view> names;
  for (const ManifestFile& file : manifest.files) {
    if (!IsLiveFileName(file.name) || !names.insert(file.name).second) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "'%s' is not a name of an index's file, or is listed twice", EscapeLine(file.name)));
    }
    absl::StrAppendFormat(&text, "file %s %d %016x\n", file.name, file.size, file.header_checksum);
  }
  AppendChecksumLine(&text);
  if (text.size() > kMaxManifestBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the manifest has %d bytes, expected at most %d: the spec has %d",
                        text.size(), kMaxManifestBytes, manifest.spec.size()));
  }
  return text;
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text, std::string_view path) {
  Manifest manifest;
  Reader reader(&manifest);
  RETURN_IF_ERROR(ReadManifest(
      text, path, {kFirstKey, kMajorVersion, kMinorVersion, kMaxManifestBytes},
      [&](std::string_view key, std::string_view value) { return reader.ReadLine(key, value); },
      [&] { return reader.CheckComplete(); }, [&] { return FormatManifest(manifest); }));
  return manifest;
}

}  // namespace cairn
