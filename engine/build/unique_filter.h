#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "index/run/entry_sink.h"

namespace cairn {

// Returns AlreadyExists: two rows of a unique index have the key `keys[i]`.
absl::Status DuplicateKey(const KeyCodec& codec, const EncodedKeys& keys, size_t i,
                          std::string_view first_row, std::string_view second_row);

// Passes entries on, and fails at the first key without nulls that two rows have
// (IndexSpec::unique). Not thread-safe.
class UniqueFilter : public EntrySink {
 public:
  // Returns the error for a key and its two rows.
  using Explain = std::function<absl::Status(const EncodedKeys& key, RowId first, RowId second)>;

  UniqueFilter(EntrySink* next, KeyCodec codec, Explain explain)
      : next_(next), codec_(std::move(codec)), explain_(std::move(explain)) {}

  absl::Status Begin(uint64_t entries, uint64_t key_bytes) override {
    return next_->Begin(entries, key_bytes);
  }
  absl::Status Append(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids) override;
  absl::Status Append(absl::Span<const std::string_view> keys,
                      absl::Span<const RowId> row_ids) override;

 private:
  template <typename Key>
  absl::Status Check(absl::Span<const Key> keys, absl::Span<const RowId> row_ids);

  // Handles a key that the consecutive rows `first` and `second` have.
  template <typename Key>
  absl::Status Repeats(const Key& key, RowId first, RowId second);

  EntrySink* next_;
  KeyCodec codec_;
  Explain explain_;
  EncodedKeys null_;  // a key with a null that two rows have, or empty
  EncodedKeys last_;  // the last key of the previous batch, or empty
  RowId last_row_ = kNoRow;
};

}  // namespace cairn
