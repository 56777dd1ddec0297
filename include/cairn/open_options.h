#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/types.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace cairn {

// Where the ordered indexes of an open index are.
enum class SearchDevice : uint8_t {
  kCpu,
  kGpu,   // Open fails if no GPU can take them
  kAuto,  // on the CPU, and on a GPU too if possible; if not, IndexStats::fallback says why
};

// Where the router's cost models come from.
enum class Calibration : uint8_t {
  kStored,  // what an earlier Open on such a machine stored in the index's directory; else trials
  kTrials,  // trials of some tens of milliseconds, stored for the next Open
  kNone,    // none: the first of OpenOptions::ordered_indexes answers, unbuffered
};

// How SecondaryIndex::Open opens an index.
struct OpenOptions {
  // kFull also compares stored leaves (BuildOptions::store_leaves) with the entries.
  VerifyLevel verify = VerifyLevel::kFull;
  // The ordered indexes to keep in memory, by factory string (ordered_index.h), one or more. Empty:
  // cpu:auto, gpu:auto or both, as `device` says. If all are on a GPU, cpu:sorted_array, which
  // takes no memory, is added for the case that the GPU fails. With SearchDevice::kAuto, a gpu:…
  // index is left out if there is no device or driver, memory does not suffice, or keys are not of
  // its kind; if it was the only one, cpu:auto takes its place.
  std::vector<std::string> ordered_indexes;
  SearchDevice device = SearchDevice::kCpu;
  // The GPUs, by CUDA ordinal, of which one may be named several times; empty: the first one. Of an
  // index in shards, shard i is on devices[i % n], and all are searched at the same time. Of any
  // other index, each device has all entries, and large batches are split over them
  // (docs/multi-gpu.md); where a device is lost, the others answer.
  // InvalidArgument where no ordered index is on a GPU, as with SearchDevice::kCpu, where a number
  // is negative, for more than kMostGroupMembers (device/group.h), and beside a factory string
  // with device=. A device that is not there is as no device: Unavailable, or the fallback.
  std::vector<int> devices;
  // Bytes that `auto` may take for ordered indexes, in memory of the host and of each GPU; beyond
  // them it takes smaller structures (docs/ordered-indexes.md), down to the mapped files. 0: half
  // of it, but no hash table of text, which takes several times as much as the tree.
  uint64_t host_memory_budget = 0;
  uint64_t device_memory_budget = 0;
  // Copies keys and row ids, and stored leaves (BuildOptions::store_leaves) that are searched, from
  // the mapped files into memory, beside the budgets, of huge pages where the kernel gives them. Of
  // 10 million strings, ones of 64 bytes are found 1.3 times as fast then, of 128 bytes 1.5 times,
  // short ones hardly faster. ResourceExhausted where memory does not suffice.
  bool copy_entries = false;
  Calibration calibration = Calibration::kStored;
  // Included columns (IndexSpec::include) whose aggregates shall be ready when Open returns; others
  // are made when they are first asked for. Those that the index does not include are passed over.
  // ResourceExhausted where memory does not suffice: 1 to 20 bytes an entry for each column
  // (docs/aggregates.md).
  std::vector<std::string> aggregates;
  int threads = 0;  // for opening and for large batches; 0: one per core that this process may use
  // The file system of the index's files. Null: the local one, whose files are mapped. Files of any
  // other are read into memory whole. It must be able to write at any offset (NewRandomRWFile), and
  // everybody who opens the index must use the same one.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

}  // namespace cairn
