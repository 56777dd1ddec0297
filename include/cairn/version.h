#pragma once

// The version of these headers, and of the CMake package that they are installed with. What a
// change of each number means is in docs/platforms.md.
#define CAIRN_VERSION_MAJOR 0
#define CAIRN_VERSION_MINOR 1
#define CAIRN_VERSION_PATCH 0

// One number to compare: #if CAIRN_VERSION >= 10200 is 1.2.0 or later.
#define CAIRN_VERSION \
  (CAIRN_VERSION_MAJOR * 10000 + CAIRN_VERSION_MINOR * 100 + CAIRN_VERSION_PATCH)

#ifdef __cplusplus
namespace cairn {

// The version of the library that the program runs with: "0.1.0". A program may compare it with the
// macros, which are those of the headers that it was compiled with.
const char* Version();

}  // namespace cairn
#endif
