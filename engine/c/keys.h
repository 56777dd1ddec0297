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

// The codec of keys that have the columns' types. InvalidArgument for more parts than a key has.
absl::StatusOr<KeyCodec> CodecOf(absl::Span<const ArrowColumn> columns, NullPolicy nulls);

// Whether a part's values are byte strings.
inline bool IsText(DataType type) {
  return type == DataType::kText || type == DataType::kBytes;
}

// Whether the columns are of the types of the codec's leading parts, as many as there are columns.
absl::Status CheckTypes(const KeyCodec& codec, absl::Span<const ArrowColumn> columns);

// `status` with the key that it is about before its message.
absl::Status InKey(size_t key, const absl::Status& status);

// A batch of logical keys as physical ones: where they are, or encoded.
class KeysIn {
 public:
  KeysIn() = default;
  KeysIn(const KeysIn&) = delete;
  KeysIn& operator=(const KeysIn&) = delete;

  // Requires CheckTypes of as many columns as the codec has parts. What the columns show must
  // outlive this. InvalidArgument, naming the key, for a value that the codec does not take.
  absl::Status Encode(const KeyCodec& codec, absl::Span<const ArrowColumn> columns);
  // ReadArrowColumns and Encode; InvalidArgument for another number of parts than the codec's.
  absl::Status Read(const KeyCodec& codec, const ArrowSchema* schema, const ArrowArray* array);

  KeyBatch batch() const { return batch_; }

 private:
  bool TakeKeys(const ColumnSpan& part);

  std::vector<ArrowValues> values_;
  EncodedKeys encoded_;
  KeyBatch batch_;
};

}  // namespace cairn
