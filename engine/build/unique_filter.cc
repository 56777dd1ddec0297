#include "engine/build/unique_filter.h"

#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_nulls.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

template <typename Key>
EncodedKeys OneKey(const Key& key) {
  EncodedKeys column(kKindOf<Key>);
  AppendKey(key, &column);
  return column;
}

template <typename Key>
bool Holds(const EncodedKeys& column, const Key& key) {
  return !column.empty() && KeyAt<Key>(column, 0) == key;
}

}  // namespace

absl::Status DuplicateKey(const KeyCodec& codec, const EncodedKeys& keys, size_t i,
                          std::string_view first_row, std::string_view second_row) {
  return absl::AlreadyExistsError(
      absl::StrFormat("the index is unique, but rows '%s' and '%s' both have the key %s",
                      EscapeBytes(first_row), EscapeBytes(second_row), KeyText(codec, keys, i)));
}

template <typename Key>
absl::Status UniqueFilter::Repeats(const Key& key, RowId first, RowId second) {
  if (Holds(null_, key)) return absl::OkStatus();
  EncodedKeys column = OneKey(key);
  ASSIGN_OR_RETURN(const bool has_null, HasNull(codec_, column, 0));
  if (!has_null) return explain_(column, first, second);
  null_ = std::move(column);
  return absl::OkStatus();
}

template <typename Key>
absl::Status UniqueFilter::Check(absl::Span<const Key> keys, absl::Span<const RowId> row_ids) {
  if (keys.empty()) return absl::OkStatus();
  if (Holds(last_, keys[0])) RETURN_IF_ERROR(Repeats(keys[0], last_row_, row_ids[0]));
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i] == keys[i - 1]) {
      RETURN_IF_ERROR(Repeats(keys[i], row_ids[i - 1], row_ids[i]));
    }
  }
  last_ = OneKey(keys.back());
  last_row_ = row_ids.back();
  return next_->Append(keys, row_ids);
}

absl::Status UniqueFilter::Append(absl::Span<const uint32_t> keys,
                                  absl::Span<const RowId> row_ids) {
  return Check(keys, row_ids);
}

absl::Status UniqueFilter::Append(absl::Span<const uint64_t> keys,
                                  absl::Span<const RowId> row_ids) {
  return Check(keys, row_ids);
}

absl::Status UniqueFilter::Append(absl::Span<const std::string_view> keys,
                                  absl::Span<const RowId> row_ids) {
  return Check(keys, row_ids);
}

}  // namespace cairn
