#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/delta/delta.h"
#include "engine/version/base.h"
#include "engine/version/range_chunk.h"
#include "engine/version/run_spans.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/physical_key.h"
#include "index/run/run_columns.h"

namespace cairn {

// The positions of a batch's ranges in the base.
struct RangePositions {
  std::vector<Position> begin, end;

  // Errors: those of a query of the base. Throws std::bad_alloc.
  absl::Status Find(const Base& base, const RangeBatch& ranges, const StopCondition& stop) {
    begin.resize(ranges.size());
    end.resize(ranges.size());
    Batch batch = Batch::Positions(ranges, absl::MakeSpan(begin), absl::MakeSpan(end));
    batch.options = stop.As<QueryOptions>();
    return base.router->Execute(batch);
  }
};

// Calls body(spans, at) for the ranges from `first` on, some at a time; the first of them is `at`.
// Stops at an error.
inline absl::Status ForEachSpans(const Delta& delta, const RangeBatch& ranges,
                                 const RangePositions& positions, size_t first, size_t count,
                                 absl::FunctionRef<absl::Status(const RunSpans&, size_t at)> body) {
  const size_t most = std::min(count, kQueryChunk);
  if (most == 0) return absl::OkStatus();
  RunSpans spans(1 + delta.parts.size(), most);
  const auto base_begin = absl::MakeConstSpan(positions.begin);
  const auto base_end = absl::MakeConstSpan(positions.end);
  return WithPhysicalKey(delta.base_run.kind(), [&](auto type) -> absl::Status {
    RangeChunk<typename decltype(type)::type> chunk(delta, ranges, most);
    for (size_t at = first; at < first + count; at += most) {
      const size_t some = std::min(most, first + count - at);
      if (delta.parts.empty()) {
        spans.Assign(base_begin.subspan(at, some), base_end.subspan(at, some));
      } else {
        chunk.Take(at, base_begin.subspan(at, some), base_end.subspan(at, some));
        spans.Clear();
        for (size_t i = 0; i < some; ++i) spans.Append(chunk.Get(i));
      }
      RETURN_IF_ERROR(body(spans, at));
    }
    return absl::OkStatus();
  });
}

}  // namespace cairn
