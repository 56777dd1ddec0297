#include "engine/shards/shard_bound.h"

#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_encoding.h"
#include "index/query/physical_key.h"

namespace cairn {

std::string OrderedKeyBytes(uint32_t key) {
  std::string bytes;
  AppendBigEndian(key, sizeof key, &bytes);
  return bytes;
}

std::string OrderedKeyBytes(uint64_t key) {
  std::string bytes;
  AppendBigEndian(key, sizeof key, &bytes);
  return bytes;
}

std::string OrderedKeyBytes(std::string_view key) {
  return std::string(key);
}

std::string OrderedKeyBytes(const EncodedKeys& keys, size_t i) {
  return WithPhysicalKey(keys.kind(), [&](auto type) {
    return OrderedKeyBytes(KeyAt<typename decltype(type)::type>(keys, i));
  });
}

bool AppendOrderedKey(std::string_view bytes, EncodedKeys* keys) {
  switch (keys->kind()) {
    case PhysicalType::kU32:
      if (bytes.size() != sizeof(uint32_t)) return false;
      keys->AppendU32(static_cast<uint32_t>(ReadBigEndian(bytes)));
      return true;
    case PhysicalType::kU64:
      if (bytes.size() != sizeof(uint64_t)) return false;
      keys->AppendU64(ReadBigEndian(bytes));
      return true;
    case PhysicalType::kBytes:
      break;
  }
  if (bytes.size() > KeyCodec::kMaxKeyBytes) return false;
  keys->AppendBytes(bytes);
  return true;
}

std::string BoundText(const KeyCodec& codec, const ShardBound& bound) {
  EncodedKeys key(codec.kind());
  std::string text = AppendOrderedKey(bound.key, &key) ? KeyText(codec, key, 0) : "(no key)";
  if (!bound.primary_key.empty()) {
    absl::StrAppendFormat(&text, " of row '%s'", EscapeBytes(bound.primary_key));
  }
  return text;
}

}  // namespace cairn
