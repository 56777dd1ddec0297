#include "engine/build/run_keys.h"

#include <utility>

#include "absl/status/statusor.h"
#include "index/keys/escaped_text.h"
#include "index/run/run_columns.h"

namespace cairn {

void AppendKey(const SortedRun& run, size_t i, EncodedKeys* keys) {
  WithColumn(run, [&](const auto& column) { column.Append(i, keys); });
}

std::string KeyText(const KeyCodec& codec, const EncodedKeys& keys, size_t i) {
  absl::StatusOr<std::string> text = codec.Format(keys, i);
  if (text.ok()) return *std::move(text);
  return keys.kind() == PhysicalType::kBytes ? EscapeBytes(keys.bytes(i)) : "(an invalid key)";
}

}  // namespace cairn
