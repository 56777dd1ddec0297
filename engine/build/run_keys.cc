#include "engine/build/run_keys.h"

#include <utility>

#include "absl/status/statusor.h"
#include "index/keys/escaped_text.h"

namespace cairn {

void AppendKey(const SortedRun& run, size_t i, EncodedKeys* keys) {
  switch (run.kind()) {
    case PhysicalType::kU32:
      return keys->AppendU32(run.u32()[i]);
    case PhysicalType::kU64:
      return keys->AppendU64(run.u64()[i]);
    case PhysicalType::kBytes:
      return keys->AppendBytes(run.bytes()[i]);
  }
}

std::string KeyText(const KeyCodec& codec, const EncodedKeys& keys, size_t i) {
  absl::StatusOr<std::string> text = codec.Format(keys, i);
  if (text.ok()) return *std::move(text);
  return keys.kind() == PhysicalType::kBytes ? EscapeBytes(keys.bytes(i))
                                             : "(no encoding of a key)";
}

}  // namespace cairn
