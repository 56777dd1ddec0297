#include "engine/extract/entity.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace cairn {
namespace {

constexpr uint32_t kVersion = 1;

// TakeVarint takes a 32-bit varint from the front of `bytes`, TakeBytes `size` bytes. They return
// false if `bytes` is too short.
bool TakeVarint(std::string_view* bytes, uint32_t* value) {
  uint64_t taken = 0;
  for (int shift = 0; shift < 35 && !bytes->empty(); shift += 7) {
    const uint64_t byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    taken |= (byte & 0x7F) << shift;
    if (byte < 0x80) {
      *value = static_cast<uint32_t>(taken);
      return taken <= UINT32_MAX;
    }
  }
  return false;
}

bool TakeBytes(std::string_view* bytes, uint32_t size, std::string_view* taken) {
  if (size > bytes->size()) return false;
  *taken = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

absl::Status Damaged(std::string_view what, size_t bytes) {
  return absl::DataLossError(absl::StrFormat("a wide-column entity of %d bytes %s", bytes, what));
}

}  // namespace

absl::Status DecodeEntity(std::string_view entity, std::vector<ColumnView>* columns) {
  columns->clear();
  std::string_view left = entity;
  uint32_t version;
  uint32_t count;
  if (!TakeVarint(&left, &version)) return Damaged("has no version", entity.size());
  if (version > kVersion) {
    return absl::UnimplementedError(
        absl::StrFormat("a wide-column entity has version %d; the latest supported version is %d",
                        version, kVersion));
  }
  if (!TakeVarint(&left, &count)) return Damaged("has no number of columns", entity.size());
  // Names and sizes of values come first, then all values. Until the values are reached, each value
  // is a view of the right size at the entity's start.
  uint64_t value_bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t size;
    ColumnView column;
    if (!TakeVarint(&left, &size) || !TakeBytes(&left, size, &column.name)) {
      return Damaged(absl::StrFormat("ends in the name of column %d of %d", i, count),
                     entity.size());
    }
    if (i > 0 && columns->back().name >= column.name) {
      return Damaged("has columns out of order", entity.size());
    }
    const bool has_size = TakeVarint(&left, &size);
    value_bytes += has_size ? size : 0;
    if (!has_size || value_bytes > entity.size()) {
      return Damaged(absl::StrFormat("has no room for the value of column %d of %d", i, count),
                     entity.size());
    }
    column.value = entity.substr(0, size);
    columns->push_back(column);
  }
  for (ColumnView& column : *columns) {
    if (!TakeBytes(&left, static_cast<uint32_t>(column.value.size()), &column.value)) {
      return Damaged("ends in its values", entity.size());
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
