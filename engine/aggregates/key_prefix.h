#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "index/keys/key_encoding.h"
#include "index/machine/status_macros.h"
#include "index/run/gallop.h"

namespace cairn {

// Extracts and compares the leading parts of physical keys. Key is uint32_t, uint64_t or
// std::string_view.
template <typename Key>
class KeyPrefixes {
 public:
  static constexpr bool kIsNumber = !std::is_same_v<Key, std::string_view>;
  // The common part of keys with the same leading parts: the high bits of a number, or the first
  // bytes of a string.
  using Prefix = std::conditional_t<kIsNumber, uint64_t, std::string_view>;

  // Requires 1 <= parts <= number of the codec's parts, and keys of the codec's kind.
  KeyPrefixes(const KeyCodec& codec, size_t parts)
      : codec_(codec), parts_(parts), whole_(parts == codec.parts().size()) {
    for (size_t i = 0; i < codec.parts().size(); ++i) {
      const size_t width = PartLayout::Of(codec, i).width();
      width_ += width;
      if (i >= parts) behind_ += 8 * width;
    }
  }

  // Returns a view into the key. DataLoss: the bytes are not a key of the codec.
  absl::StatusOr<Prefix> Of(Key key) const {
    if constexpr (kIsNumber) {
      return uint64_t{key} >> behind_;
    } else {
      if (whole_) return key;
      std::string scratch;
      scratch.reserve(key.size());
      std::string_view rest = key;
      DataValue value;
      for (size_t i = 0; i < parts_; ++i) {
        RETURN_IF_ERROR(TakePart(PartLayout::Of(codec_, i), &rest, &value, &scratch));
      }
      return key.substr(0, key.size() - rest.size());
    }
  }

  // Has: whether the key has the prefix. HasOrIsBefore: whether it has the prefix or sorts before
  // it.
  bool Has(const Prefix& prefix, Key key) const {
    if constexpr (kIsNumber) {
      return uint64_t{key} >> behind_ == prefix;
    } else {
      return whole_ ? key == prefix : StartsWith(key, prefix);
    }
  }
  bool HasOrIsBefore(const Prefix& prefix, Key key) const {
    if constexpr (kIsNumber) {
      return uint64_t{key} >> behind_ <= prefix;
    } else {
      return key <= prefix || (!whole_ && StartsWith(key, prefix));
    }
  }

  // Appends the values of the prefix's parts, one to each column. DataLoss as for Of.
  absl::Status AppendValues(const Prefix& prefix, std::vector<ColumnValues>* columns) const {
    std::string packed;
    std::string_view bytes;
    if constexpr (kIsNumber) {
      AppendBigEndian(prefix << behind_, width_, &packed);
      bytes = packed;
    } else {
      bytes = prefix;
    }
    std::string scratch;
    scratch.reserve(bytes.size());
    for (size_t i = 0; i < parts_; ++i) {
      DataValue value;
      RETURN_IF_ERROR(TakePart(PartLayout::Of(codec_, i), &bytes, &value, &scratch));
      RETURN_IF_ERROR((*columns)[i].Append(value));
    }
    return absl::OkStatus();
  }

 private:
  const KeyCodec& codec_;
  const size_t parts_;
  const bool whole_;   // whether these are all parts
  size_t width_ = 0;   // of a number, in bytes
  size_t behind_ = 0;  // bits below a number's prefix
};

}  // namespace cairn
