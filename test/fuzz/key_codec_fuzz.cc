// Key codecs. The first bytes choose a codec: the number of parts, each part's type, the null
// policy. The rest is used as a physical key, and as a key's text; accepted ones must round-trip.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/key_codec.h"

namespace {

using cairn::DataType;
using cairn::EncodedKeys;
using cairn::KeyCodec;
using cairn::PhysicalType;

void Require(bool condition) {
  if (!condition) std::abort();
}

int Compare(const EncodedKeys& keys, size_t i, const EncodedKeys& others, size_t j) {
  if (keys.kind() == PhysicalType::kBytes) return keys.bytes(i).compare(others.bytes(j));
  const bool narrow = keys.kind() == PhysicalType::kU32;
  const uint64_t a = narrow ? keys.u32(i) : keys.u64(i);
  const uint64_t b = narrow ? others.u32(j) : others.u64(j);
  return a < b ? -1 : a > b;
}

void AppendPhysical(std::string_view input, EncodedKeys* keys) {
  uint64_t number = 0;
  for (const char byte : input.substr(0, 8)) number = number << 8 | static_cast<uint8_t>(byte);
  if (keys->kind() == PhysicalType::kU32) {
    keys->AppendU32(static_cast<uint32_t>(number));
  } else if (keys->kind() == PhysicalType::kU64) {
    keys->AppendU64(number);
  } else {
    keys->AppendBytes(input);
  }
}

// Key 0 of `keys`, which the codec decodes, must survive encoding and text.
void CheckRoundTrips(const KeyCodec& codec, const EncodedKeys& keys) {
  std::vector<cairn::DataValue> values;
  std::string scratch;
  Require(codec.Decode(keys, 0, &values, &scratch).ok());
  EncodedKeys again(codec.kind());
  Require(codec.Append(values, &again).ok());
  const auto text = codec.Format(keys, 0);
  Require(text.ok() && codec.Parse(*text, &again).ok());
  Require(Compare(keys, 0, again, 0) == 0 && Compare(keys, 0, again, 1) == 0);
  // The key must also be in the range of its first part.
  EncodedKeys lower(codec.kind());
  EncodedKeys upper(codec.kind());
  bool open = false;
  Require(codec
              .AppendPrefixRange(absl::MakeConstSpan(values).subspan(0, 1), false, &lower, &upper,
                                 &open)
              .ok());
  Require(Compare(keys, 0, lower, 0) >= 0 && (open || Compare(keys, 0, upper, 0) < 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t parts = std::min<size_t>(1 + data[0] % 16, size - 1);
  std::vector<DataType> types;
  for (size_t i = 0; i < parts; ++i) types.push_back(static_cast<DataType>(data[1 + i] % 12));
  const auto codec = KeyCodec::Create(types, static_cast<cairn::NullPolicy>(data[0] / 16 % 3));
  Require(codec.ok());
  const std::string_view input(reinterpret_cast<const char*>(data) + 1 + parts, size - 1 - parts);

  EncodedKeys physical(codec->kind());
  AppendPhysical(input, &physical);
  if (codec->Format(physical, 0).ok()) CheckRoundTrips(*codec, physical);

  EncodedKeys parsed(codec->kind());
  if (codec->Parse(input, &parsed).ok()) CheckRoundTrips(*codec, parsed);

  EncodedKeys lower(codec->kind());
  EncodedKeys upper(codec->kind());
  bool open = false;
  if (codec->ParsePrefix(input, &lower, &upper, &open).ok()) {
    Require(lower.size() == 1 && upper.size() == 1);
    Require(open || Compare(lower, 0, upper, 0) < 0);
  }
  return 0;
}
