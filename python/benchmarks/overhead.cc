// The C++ side of overhead.py, for ctypes: calls of an index, timed in C++. It links its own
// libcairn, and maps the same files as the Python package.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/cairn.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Opened {
  std::unique_ptr<cairn::SecondaryIndex> index;
  std::vector<std::string_view> views;
};

// Nanoseconds for `calls` calls; negative if one fails.
template <typename Call>
int64_t Time(int64_t calls, Call call) {
  const Clock::time_point start = Clock::now();
  for (int64_t i = 0; i < calls; ++i) {
    if (!call().ok()) return -1;
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

}  // namespace

extern "C" {

void* overhead_open(const char* directory) {
  auto index = cairn::SecondaryIndex::Open(directory);
  return index.ok() ? new Opened{*std::move(index), {}} : nullptr;
}

int64_t overhead_find_first(void* opened, const uint64_t* keys, int64_t size, uint32_t* rows,
                            int64_t calls) {
  const auto& index = *static_cast<Opened*>(opened)->index;
  const auto n = static_cast<size_t>(size);
  return Time(calls, [&] {
    return index.Execute(
        cairn::Batch::FindFirst(absl::MakeConstSpan(keys, n), absl::MakeSpan(rows, n)));
  });
}

int64_t overhead_find(void* opened, const uint64_t* keys, int64_t size, int64_t calls) {
  const auto& index = *static_cast<Opened*>(opened)->index;
  return Time(calls, [&] {
    // As in Python, each call has a separate result.
    cairn::FindResult matches;
    return index.Find(absl::MakeConstSpan(keys, static_cast<size_t>(size)), &matches);
  });
}

// Creates views of consecutive strings, given their ends.
void overhead_set_text(void* opened, const char* heap, const int64_t* offsets, int64_t size) {
  auto* held = static_cast<Opened*>(opened);
  held->views.clear();
  for (int64_t i = 0; i < size; ++i) {
    held->views.emplace_back(heap + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i]));
  }
}

int64_t overhead_find_first_text(void* opened, uint32_t* rows, int64_t calls) {
  const auto* held = static_cast<Opened*>(opened);
  return Time(calls, [&] {
    return held->index->Execute(
        cairn::Batch::FindFirst(held->views, absl::MakeSpan(rows, held->views.size())));
  });
}

}  // extern "C"
