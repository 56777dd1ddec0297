#include "gpu/host/string_batch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/batch_threads.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr size_t kChunksInFlight = QueryContext::kStreams;
constexpr size_t kBlockAlignment = 256;
// Maximum total bytes of a chunk's strings, unless a single string is longer.
constexpr size_t kMaxChunkBytes = size_t{32} << 20;
// From this number on, strings are gathered on several threads.
constexpr size_t kMinForThreads = size_t{1} << 12, kParts = 16;

constexpr size_t Aligned(size_t bytes) {
  return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

// Calls body(part) for each part, on several threads unless memory for that runs out.
void RunParts(size_t parts, absl::FunctionRef<void(size_t)> body) {
  if (parts > 1) {
    try {
      RunOnBatchThreads(parts, body);
      return;
    } catch (const std::bad_alloc&) {
    }
  }
  for (size_t part = 0; part < parts; ++part) body(part);
}

// Chunks alternate on the streams. Each has a block of pinned memory and one of device memory, with
// results first, then offsets, then strings.
class ChunkedStrings {
 public:
  ChunkedStrings(const StringBatch& batch, const HostBatchPolicy& policy, QueryContext& context)
      : batch_(batch),
        context_(context),
        chunk_(ChunkSize(batch, policy)),
        string_bytes_(std::max(batch.longest, std::min(kMaxChunkBytes, chunk_ * batch.longest))),
        block_bytes_(StringsAt(chunk_) + Aligned(string_bytes_ + sizeof(uint64_t))),
        zero_copy_(batch.size <= std::min(chunk_, policy.max_zero_copy)) {}

  // On error, chunks may be in flight.
  absl::Status Run() {
    const size_t slots = std::min((batch_.size + chunk_ - 1) / chunk_, kChunksInFlight);
    ASSIGN_OR_RETURN(pinned_, context_.Pinned(slots * block_bytes_));
    size_t first = 0, started = 0, finished = 0;
    for (; first < batch_.size; ++started) {
      const size_t slot = started % slots;
      if (started >= slots) RETURN_IF_ERROR(Finish(finished++ % slots));
      RETURN_IF_ERROR(Start(first, slot));
      first += under_way_[slot].count;
    }
    for (; finished < started; ++finished) RETURN_IF_ERROR(Finish(finished % slots));
    return absl::OkStatus();
  }

 private:
  // Queries [first, first + count).
  struct Chunk {
    size_t first = 0, count = 0;
  };

  static size_t ChunkSize(const StringBatch& batch, const HostBatchPolicy& policy) {
    const size_t wanted =
        std::min(std::max(batch.size / policy.chunks, policy.min_chunk), policy.max_string_chunk);
    return std::max<size_t>(1, std::min(wanted, batch.size));
  }

  char* Staging(size_t slot) const { return pinned_ + slot * block_bytes_; }
  cudaStream_t StreamOf(size_t slot) const { return context_.stream(static_cast<int>(slot)); }
  // The offsets of the arrays in a block of `count` queries.
  size_t OffsetsAt(size_t count) const { return Aligned(count * batch_.results.element_bytes); }
  size_t StringsAt(size_t count) const {
    return OffsetsAt(count) + Aligned((count + 1) * sizeof(uint32_t));
  }

  // A chunk divided into parts, with the offset of each part's strings.
  struct Parts {
    Chunk chunk;
    size_t parts = 1;
    std::array<uint64_t, kParts + 1> begins{};

    size_t BeginOf(size_t part) const { return chunk.count * part / parts; }
    size_t CountOf(size_t part) const { return BeginOf(part + 1) - BeginOf(part); }
    uint64_t bytes() const { return begins[parts]; }
  };
  // Measures the strings of the queries from `first` on, for a whole chunk, or for fewer queries if
  // the strings would not fit.
  Parts Measure(size_t first) {
    Parts all;
    all.chunk = {first, std::min(next_count_, batch_.size - first)};
    for (;; all.chunk.count = (all.chunk.count + 1) / 2) {
      all.parts = all.chunk.count < kMinForThreads ? 1 : kParts;
      RunParts(all.parts, [&](size_t part) {
        all.begins[part + 1] = batch_.strings->Bytes(first + all.BeginOf(part), all.CountOf(part));
      });
      for (size_t part = 0; part < all.parts; ++part) all.begins[part + 1] += all.begins[part];
      if (all.bytes() <= string_bytes_ || all.chunk.count == 1) break;
    }
    // Later strings usually have similar lengths. If they are shorter, chunks grow again.
    next_count_ = std::min(chunk_, 2 * all.chunk.count);
    return all;
  }
  // Gathers the strings. A part may run twice, and writes the same both times.
  void Gather(const Parts& all, uint32_t* offsets, char* strings) const {
    RunParts(all.parts, [&](size_t part) {
      const size_t begin = all.BeginOf(part);
      batch_.strings->Copy(all.chunk.first + begin, all.CountOf(part),
                           static_cast<uint32_t>(all.begins[part]), offsets + begin, strings);
    });
    offsets[all.chunk.count] = static_cast<uint32_t>(all.bytes());
  }

  absl::Status Start(size_t first, size_t slot) {
    const cudaStream_t stream = StreamOf(slot);
    if (memory_[slot].size() == 0) {
      ASSIGN_OR_RETURN(memory_[slot], DeviceBuffer<char>::Allocate(block_bytes_, stream));
    }
    const Parts parts = Measure(first);
    under_way_[slot] = parts.chunk;
    const size_t count = parts.chunk.count;
    const size_t offsets_at = OffsetsAt(count), strings_at = StringsAt(count);
    char *const staging = Staging(slot), *const memory = memory_[slot].data();
    Gather(parts, reinterpret_cast<uint32_t*>(staging + offsets_at), staging + strings_at);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(memory + offsets_at, staging + offsets_at,
                                               strings_at - offsets_at + parts.bytes(),
                                               cudaMemcpyHostToDevice, stream));
    RETURN_IF_ERROR(MayCallDevice());
    const DeviceKeys keys(memory + strings_at, reinterpret_cast<uint32_t*>(memory + offsets_at),
                          count);
    RETURN_IF_ERROR(batch_.search(keys, zero_copy_ ? staging : memory, stream));
    if (!zero_copy_) {
      CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(
          staging, memory, count * batch_.results.element_bytes, cudaMemcpyDeviceToHost, stream));
    }
    return absl::OkStatus();
  }

  // Waits for a chunk and copies its results to the caller.
  absl::Status Finish(size_t slot) {
    RETURN_IF_ERROR(context_.Wait(static_cast<int>(slot)));
    const size_t element = batch_.results.element_bytes;
    const Chunk& chunk = under_way_[slot];
    CopyOnHost(static_cast<char*>(batch_.results.data) + chunk.first * element, Staging(slot),
               chunk.count * element);
    return absl::OkStatus();
  }

  const StringBatch& batch_;
  QueryContext& context_;
  const size_t chunk_;         // maximum number of queries
  const size_t string_bytes_;  // maximum bytes of their strings
  const size_t block_bytes_;
  const bool zero_copy_;        // the kernel writes the results to host memory
  size_t next_count_ = chunk_;  // queries to try for the next chunk
  char* pinned_ = nullptr;
  std::array<Chunk, kChunksInFlight> under_way_;
  std::array<DeviceBuffer<char>, kChunksInFlight> memory_;
};

}  // namespace

absl::Status RunStringBatch(const StringBatch& batch, const HostBatchPolicy& policy,
                            QueryContext& context) {
  const OnDevice on_device(context.device());
  const WaitsForItsUses waits;
  absl::Status status = ChunkedStrings(batch, policy, context).Run();
  // Work that is still on the streams may access the context's memory.
  if (!status.ok()) (void)context.WaitForAll();
  return status;
}

}  // namespace cairn::gpu
