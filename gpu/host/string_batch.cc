#include "gpu/host/string_batch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
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
// Of the strings of a chunk, at most, unless one alone is longer.
constexpr size_t kMostChunkBytes = size_t{32} << 20;
// Strings are put together on several threads where there are so many.
constexpr size_t kLeastForThreads = size_t{1} << 12, kParts = 16;

constexpr size_t Aligned(size_t bytes) {
  return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

// Calls body(part) for each, on several threads unless memory does not suffice for that.
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

// memcpy, without a call for strings of up to 32 bytes, as most are.
inline void CopyShort(std::string_view from, char* to) {
  const size_t size = from.size();
  const auto copy = [&](auto word) {
    const size_t last = size - sizeof(word);
    std::memcpy(&word, from.data() + last, sizeof(word));
    auto first = word;
    std::memcpy(&first, from.data(), sizeof(first));
    std::memcpy(to, &first, sizeof(first));
    std::memcpy(to + last, &word, sizeof(word));
  };
  struct Sixteen {
    uint64_t words[2];
  };
  if (size > 2 * sizeof(Sixteen)) {
    std::memcpy(to, from.data(), size);
  } else if (size >= sizeof(Sixteen)) {
    copy(Sixteen());
  } else if (size >= sizeof(uint64_t)) {
    copy(uint64_t());
  } else if (size >= sizeof(uint32_t)) {
    copy(uint32_t());
  } else {
    for (size_t i = 0; i < size; ++i) to[i] = from[i];
  }
}

// Chunks take turns on the streams. Each has a block of pinned memory and one of the device:
// results first, then offsets, then strings.
class ChunkedStrings {
 public:
  ChunkedStrings(const StringBatch& batch, const HostBatchPolicy& policy, QueryContext& context)
      : batch_(batch),
        context_(context),
        chunk_(ChunkSize(batch, policy)),
        block_bytes_(StringsAt(chunk_) + Aligned(chunk_ * MostBytes(batch) + sizeof(uint64_t))),
        zero_copy_(batch.size <= std::min(chunk_, policy.most_zero_copy)) {}

  // Where this fails, chunks may be in flight.
  absl::Status Run() {
    const size_t chunks = (batch_.size + chunk_ - 1) / chunk_,
                 slots = std::min(chunks, kChunksInFlight);
    ASSIGN_OR_RETURN(pinned_, context_.Pinned(slots * block_bytes_));
    for (size_t slot = 0; slot < slots; ++slot) {
      ASSIGN_OR_RETURN(memory_[slot], DeviceBuffer<char>::Allocate(block_bytes_, StreamOf(slot)));
    }
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      if (chunk >= slots) RETURN_IF_ERROR(Finish(chunk - slots));
      RETURN_IF_ERROR(Start(chunk));
    }
    for (size_t chunk = chunks - slots; chunk < chunks; ++chunk) RETURN_IF_ERROR(Finish(chunk));
    return absl::OkStatus();
  }

 private:
  static size_t MostBytes(const StringBatch& batch) { return batch.longest_key + 1; }
  static size_t ChunkSize(const StringBatch& batch, const HostBatchPolicy& policy) {
    const size_t wanted = std::min(std::max(batch.size / policy.chunks, policy.least_chunk),
                                   policy.most_staged_chunk);
    return std::max<size_t>(1, std::min({wanted, batch.size, kMostChunkBytes / MostBytes(batch)}));
  }

  size_t CountOf(size_t chunk) const { return std::min(chunk_, batch_.size - chunk * chunk_); }
  char* Staging(size_t chunk) const { return pinned_ + chunk % kChunksInFlight * block_bytes_; }
  char* Memory(size_t chunk) const { return memory_[chunk % kChunksInFlight].data(); }
  cudaStream_t StreamOf(size_t chunk) const {
    return context_.stream(static_cast<int>(chunk % kChunksInFlight));
  }
  // Where in a block of `count` queries these begin.
  size_t OffsetsAt(size_t count) const { return Aligned(count * batch_.results.element_bytes); }
  size_t StringsAt(size_t count) const {
    return OffsetsAt(count) + Aligned((count + 1) * sizeof(uint32_t));
  }

  // A query as far as it matters.
  StringKey KeyAt(size_t i) const {
    const StringKey key = batch_.key(i);
    if (key.bytes.size() <= batch_.longest_key) return key;
    return {key.bytes.substr(0, batch_.longest_key + 1)};
  }

  // Puts a chunk's strings together; returns their bytes.
  size_t Gather(size_t first, size_t count, uint32_t* offsets, char* strings) const {
    const size_t parts = count < kLeastForThreads ? 1 : kParts;
    std::array<uint32_t, kParts + 1> begins{};
    const auto begin_of = [&](size_t part) { return count * part / parts; };
    RunParts(parts, [&](size_t part) {
      uint32_t bytes = 0;
      for (size_t i = begin_of(part); i < begin_of(part + 1); ++i) {
        bytes += static_cast<uint32_t>(KeyAt(first + i).size());
      }
      begins[part + 1] = bytes;
    });
    for (size_t part = 0; part < parts; ++part) begins[part + 1] += begins[part];
    // A part may be run again, and writes the same.
    RunParts(parts, [&](size_t part) {
      uint32_t at = begins[part];
      for (size_t i = begin_of(part); i < begin_of(part + 1); ++i) {
        const StringKey key = KeyAt(first + i);
        offsets[i] = at;
        CopyShort(key.bytes, strings + at);
        at += static_cast<uint32_t>(key.bytes.size());
        if (key.last != StringKey::kNoByte) strings[at++] = static_cast<char>(key.last);
      }
    });
    offsets[count] = begins[parts];
    return begins[parts];
  }

  absl::Status Start(size_t chunk) {
    const size_t count = CountOf(chunk), first = chunk * chunk_;
    const size_t offsets_at = OffsetsAt(count), strings_at = StringsAt(count);
    char *const staging = Staging(chunk), *const memory = Memory(chunk);
    const cudaStream_t stream = StreamOf(chunk);
    const size_t bytes = Gather(first, count, reinterpret_cast<uint32_t*>(staging + offsets_at),
                                staging + strings_at);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(memory + offsets_at, staging + offsets_at,
                                               strings_at - offsets_at + bytes,
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

  // Waits for a chunk, and gives the caller its results.
  absl::Status Finish(size_t chunk) {
    RETURN_IF_ERROR(context_.Wait(static_cast<int>(chunk % kChunksInFlight)));
    const size_t element = batch_.results.element_bytes;
    CopyOnHost(static_cast<char*>(batch_.results.data) + chunk * chunk_ * element, Staging(chunk),
               CountOf(chunk) * element);
    return absl::OkStatus();
  }

  const StringBatch& batch_;
  QueryContext& context_;
  const size_t chunk_;  // queries
  const size_t block_bytes_;
  const bool zero_copy_;  // results are written to memory of the host by the kernel
  char* pinned_ = nullptr;
  std::array<DeviceBuffer<char>, kChunksInFlight> memory_;
};

}  // namespace

absl::Status RunStringBatch(const StringBatch& batch, const HostBatchPolicy& policy,
                            QueryContext& context) {
  const OnDevice on_device(context.device());
  const WaitsForItsUses waits;
  absl::Status status = ChunkedStrings(batch, policy, context).Run();
  // What the streams still do uses memory of the context's.
  if (!status.ok()) (void)context.WaitForAll();
  return status;
}

}  // namespace cairn::gpu
