#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/internal/arrow.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

namespace cairn {

// Checks that each column has the type of the codec's leading part of the same number.
absl::Status CheckTypes(const KeyCodec& codec, absl::Span<const ArrowColumn> columns);

// Returns `status` with the key's number before its message.
absl::Status InKey(size_t key, const absl::Status& status);

// A batch of logical keys as physical ones, used in place or encoded.
class KeysIn {
 public:
  KeysIn() = default;
  KeysIn(const KeysIn&) = delete;
  KeysIn& operator=(const KeysIn&) = delete;

  // Requires CheckTypes. The columns' data must outlive this. InvalidArgument, naming the key: a
  // value that the codec does not accept.
  absl::Status Encode(const KeyCodec& codec, absl::Span<const ArrowColumn> columns);
  // Calls ReadArrowColumns and Encode. InvalidArgument: the number of parts is not the codec's.
  absl::Status Read(const KeyCodec& codec, const ArrowSchema* schema, const ArrowArray* array);

  KeyBatch batch() const { return batch_; }

 private:
  std::vector<ArrowValues> values_;
  EncodedKeys encoded_;
  KeyBatch batch_;
};

}  // namespace cairn
