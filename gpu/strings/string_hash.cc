#include "gpu/strings/string_hash.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "gpu/layout/string_hash_units.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/stream.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/strings/pilot_table.h"

namespace cairn::gpu {
namespace {

constexpr size_t kKeysATask = size_t{1} << 16;
// For a table of 10^9 keys, about one seed in forty fails.
constexpr uint64_t kMaxSeeds = 4;

uint64_t HashOf(std::string_view key, uint64_t seed) {
  uint64_t sum = 0;
  for (size_t at = 0; at < key.size(); at += sizeof(uint64_t)) {
    uint64_t unit = 0;
    std::memcpy(&unit, key.data() + at, std::min(sizeof(unit), key.size() - at));
    sum += HashUnit(unit, static_cast<uint32_t>(at / sizeof(unit)), seed);
  }
  return FinishHash(sum, static_cast<uint32_t>(key.size()));
}

}  // namespace

absl::StatusOr<std::optional<StringHash>> StringHash::Build(const DistinctStrings& keys,
                                                            absl::Span<const uint32_t> begins,
                                                            int threads, cudaStream_t stream) {
  AlignedBuffer<uint64_t> hashes(keys.size());
  for (uint64_t seed = 1; seed <= kMaxSeeds; ++seed) {
    ParallelFor(threads, (keys.size() + kKeysATask - 1) / kKeysATask, [&](size_t task) {
      const size_t last = std::min((task + 1) * kKeysATask, keys.size());
      for (size_t i = task * kKeysATask; i < last; ++i) hashes[i] = HashOf(keys[i], seed);
    });
    const auto table = PilotTable::Build(hashes.span(), begins.first(keys.size()), threads);
    if (!table.has_value()) continue;
    const WaitsAtEnd waits(stream);  // for copies from the table
    StringHash hash;
    hash.seed_ = seed;
    hash.part_slots_ = table->part_slots();
    RETURN_IF_ERROR(Upload(table->pilots(), &hash.pilots_, stream));
    RETURN_IF_ERROR(Upload(table->slots(), &hash.slots_, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    return std::optional<StringHash>(std::move(hash));
  }
  return std::optional<StringHash>();
}

uint64_t StringHash::MostBytesFor(size_t keys) {
  return PilotTable::MostBytesFor(keys);
}

StringHashView StringHash::view() const {
  StringHashView view;
  view.pilots = pilots_.data();
  view.slots = slots_.data();
  view.buckets = static_cast<uint32_t>(pilots_.size());
  view.part_slots = part_slots_;
  view.seed = seed_;
  return view;
}

void StringHash::Detach() {
  pilots_.SetStream(AfterAllUses());
  slots_.SetStream(AfterAllUses());
}

}  // namespace cairn::gpu
