#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "cairn/query.h"

// A route is one way to answer a batch: an ordered index, which is in memory of the host or of a
// GPU, and a strategy (strategy.h). An open SecondaryIndex has several, and sends each batch along
// the one that its cost models predict to be best. A route's name is its ordered index's device and
// structure, then the strategy unless that is unbuffered: "cpu:packed", "cpu:packed+sort_based",
// "gpu:packed".

namespace cairn {

// How a batch was routed, for people. Plain data; what Batch::explain points to is written over
// by each call.
struct Explain {
  struct Candidate {
    std::string route;
    absl::Duration predicted;  // infinite where the route cannot take the batch
    std::string note;          // why it was out of the question; empty if it was not
  };

  Operation operation = Operation::kFindFirst;
  size_t queries = 0;
  double expected_rows = 0;           // of the whole batch; Find and Scan
  std::vector<Candidate> candidates;  // all routes, the fastest prediction first
  std::string route;                  // that answered
  std::string index;                  // its ordered index, as IndexStats describes it
  std::string reason;                 // why it was taken
  absl::Duration predicted;
  absl::Duration measured;            // from the call to its answers, failed tries included
  std::vector<std::string> failures;  // of routes that were tried before: name and error
};

// Counters of one route since its index was opened. Of batches of less than 64 queries one in
// sixteen is timed, and its time counted sixteen times.
struct RouteStats {
  // Bucket b counts batches that took less than 2^b microseconds and fit no lower bucket; the last
  // one takes all longer ones, too.
  static constexpr size_t kBuckets = 24;

  std::string route;
  uint64_t batches = 0;
  uint64_t queries = 0;
  uint64_t bytes = 0;     // of keys and answers
  uint64_t failures = 0;  // batches that another route had to answer
  absl::Duration busy;    // response times, added up
  std::array<uint64_t, kBuckets> response_times = {};
};

}  // namespace cairn
