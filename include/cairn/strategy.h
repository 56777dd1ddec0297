#pragma once

#include <cstdint>

namespace cairn {

// Ways to put a batch to an index, after Kim et al., FAST (SIGMOD 2010), section 7: they trade the
// response time of a batch against throughput.
enum class Strategy : uint8_t {
  kUnbuffered,  // the batch as it is
  kBuffered,    // queries are gathered by parts of the key range, and searched part by part
  kSortBased,   // the batch is sorted first
};

enum class ResultOrder : uint8_t {
  kCaller,  // result i is of keys[i]
  kKey,     // results ascend by key, or by parts of the key range if those are all that is known
};

}  // namespace cairn
