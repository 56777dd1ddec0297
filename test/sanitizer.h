#pragma once

#include <algorithm>
#include <cstddef>

namespace cairn {

// Whether this was built for ThreadSanitizer. Instrumented code takes ten to fifty times as long,
// so what one thread does alone, and many times over, is tried on less there: the other builds see
// all of it.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderTsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kUnderTsan = true;
#else
inline constexpr bool kUnderTsan = false;
#endif
#else
inline constexpr bool kUnderTsan = false;
#endif

// `count`, and under ThreadSanitizer one `part` of it, at least 1.
constexpr size_t FewerUnderTsan(size_t count, size_t part = 10) {
  return kUnderTsan ? std::max<size_t>(1, count / part) : count;
}

}  // namespace cairn
