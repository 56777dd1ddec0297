#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace cairn {

// Makes room in an absl::flat_hash_map or _set for one more element, so that inserting it does not
// allocate for the table. Throws std::bad_alloc; the table is unchanged then. Without it, a table
// that fails to grow is left in a state in which not even its destructor may run.
template <typename Table>
void MakeRoomForOne(Table* table) {
  // The table grows if it is full to 25/32. Below that, it at most removes deleted elements in
  // place.
  constexpr size_t kMinCapacity = 31;
  const size_t size = table->size() + 1;
  if (table->capacity() >= kMinCapacity && size * 32 <= table->capacity() * 25) [[likely]]
    return;
  alignas(Table) std::byte memory[sizeof(Table)];
  // Not destroyed if it fails to grow; then it owns nothing.
  auto* const larger = ::new (memory) Table(0, table->hash_function(), table->key_eq());
  larger->reserve(2 * size + kMinCapacity);
  larger->merge(*table);
  *table = std::move(*larger);
  larger->~Table();
}

}  // namespace cairn
