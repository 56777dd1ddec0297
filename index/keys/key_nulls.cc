#include "index/keys/key_nulls.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "index/machine/status_macros.h"

namespace cairn {

absl::StatusOr<bool> HasNull(const KeyCodec& codec, const EncodedKeys& keys, size_t i) {
  if (codec.nulls() == NullPolicy::kSkip) return false;
  std::vector<DataValue> values;
  std::string scratch;
  RETURN_IF_ERROR(codec.Decode(keys, i, &values, &scratch));
  return std::any_of(values.begin(), values.end(), [](const DataValue& value) {
    return std::holds_alternative<std::monostate>(value);
  });
}

}  // namespace cairn
