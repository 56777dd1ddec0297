// Arbitrary bytes as a manifest: either they are rejected, or the manifest formats and parses to
// itself. The bytes are used unchanged, and as the lines before a correct checksum.
#include "index/files/manifest.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "index/files/checksum.h"

namespace cairn {
namespace {

void ParseAndFormat(std::string_view text) {
  const auto manifest = ParseManifest(text, "fuzz");
  if (!manifest.ok()) return;
  const auto again = FormatManifest(*manifest);
  // Unknown lines of a newer minor version are lost, so only the text may differ.
  if (!again.ok()) std::abort();
  const auto back = ParseManifest(*again, "fuzz");
  if (!back.ok() || !(*back == *manifest)) std::abort();
}

// The lines of `text` without its checksum, if it has one.
std::string_view Lines(std::string_view text) {
  const size_t at = text.rfind("checksum ");
  return at == std::string_view::npos ? text : text.substr(0, at);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  cairn::ParseAndFormat(text);
  const std::string_view lines = cairn::Lines(text);
  cairn::ParseAndFormat(
      absl::StrFormat("%schecksum %016x\n", lines, cairn::Checksum(lines.data(), lines.size())));
  return 0;
}
