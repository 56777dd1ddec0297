#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/internal/arrow.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

namespace cairn {

// Returns the codec of keys that have the columns' types. InvalidArgument: more parts than a key
// can have.
absl::StatusOr<KeyCodec> CodecOf(absl::Span<const ArrowColumn> columns, NullPolicy nulls);

// Returns whether a part's values are byte strings.
inline bool IsText(DataType type) {
  return type == DataType::kText || type == DataType::kBytes;
}

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

  // Requires CheckTypes, and one column per part of the codec. The columns' data must outlive this.
  // InvalidArgument, naming the key: a value that the codec does not accept.
  absl::Status Encode(const KeyCodec& codec, absl::Span<const ArrowColumn> columns);
  // Calls ReadArrowColumns and Encode. InvalidArgument: the number of parts is not the codec's.
  absl::Status Read(const KeyCodec& codec, const ArrowSchema* schema, const ArrowArray* array);

  KeyBatch batch() const { return batch_; }

 private:
  bool TakeKeys(const ColumnSpan& part);

  std::vector<ArrowValues> values_;
  EncodedKeys encoded_;
  KeyBatch batch_;
};

}  // namespace cairn
