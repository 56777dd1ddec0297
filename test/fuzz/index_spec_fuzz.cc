// Index specs: an accepted spec parses again from its canonical text, has a codec, and compiles
// unless it names an extractor that is not registered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cairn/index_spec.h"
#include "engine/extract/row_extractor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = cairn::IndexSpec::Parse(text);
  if (!spec.ok()) return 0;
  const std::string canonical = spec->ToString();
  const auto again = cairn::IndexSpec::Parse(canonical);
  if (!again.ok() || again->ToString() != canonical) std::abort();
  if (!spec->Codec().ok()) std::abort();
  const auto extractor = cairn::RowExtractor::Create(*spec);
  if (!extractor.ok() && !absl::IsNotFound(extractor.status())) std::abort();
  return 0;
}
