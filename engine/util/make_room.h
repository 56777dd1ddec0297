#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace cairn {

// Makes room in an absl::flat_hash_map or _set for one more element, so that inserting it allocates
// nothing for the table. Throws std::bad_alloc and then has changed nothing: when a table of theirs
// fails to grow, it is left such that not even its destructor may run.
template <typename Table>
void MakeRoomForOne(Table* table) {
  // Full to 25/32 it grows; below, deleted elements are at most swept out in place.
  constexpr size_t kMinCapacity = 31;
  const size_t size = table->size() + 1;
  if (table->capacity() >= kMinCapacity && size * 32 <= table->capacity() * 25) [[likely]]
    return;
  alignas(Table) std::byte memory[sizeof(Table)];
  // Not destroyed if it fails to grow; it holds nothing then.
  auto* const larger = ::new (memory) Table();
  larger->reserve(2 * size + kMinCapacity);
  larger->merge(*table);
  *table = std::move(*larger);
  larger->~Table();
}

}  // namespace cairn
