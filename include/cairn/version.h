#pragma once

// The version of these headers and of the CMake package that contains them. docs/platforms.md
// defines when each number changes.
#define CAIRN_VERSION_MAJOR 0
#define CAIRN_VERSION_MINOR 1
#define CAIRN_VERSION_PATCH 0

// The version as one number, for comparisons: #if CAIRN_VERSION >= 10200 tests for 1.2.0 or later.
#define CAIRN_VERSION \
  (CAIRN_VERSION_MAJOR * 10000 + CAIRN_VERSION_MINOR * 100 + CAIRN_VERSION_PATCH)

#ifdef __cplusplus
namespace cairn {

// Returns the version of the library at run time, for example "0.1.0". Compare it with the macros
// above to detect a library that differs from the headers. The string is never freed.
const char* Version();

}  // namespace cairn
#endif
