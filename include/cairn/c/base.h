#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cairn/c/arrow.h"
#include "cairn/version.h"

// Common parts of the headers of the C API (cairn/c.h): Arrow's structures, errors, cancellation
// and progress.

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CAIRN_C_API __attribute__((visibility("default")))
#define CAIRN_C_MUST_USE __attribute__((visibility("default"), warn_unused_result))
#else
#define CAIRN_C_API
#define CAIRN_C_MUST_USE
#endif

// Defines `type`_init(), which returns default options.
#define CAIRN_C_INIT(type)               \
  static inline type type##_init(void) { \
    type options;                        \
    memset(&options, 0, sizeof options); \
    options.size = sizeof options;       \
    return options;                      \
  }

// Returns the version of the library at run time, for example "0.1.0".
CAIRN_C_API const char* cairn_version(void);

// Errors.

// Codes of errors: those of absl::StatusCode.
enum {
  CAIRN_OK = 0,
  CAIRN_CANCELLED = 1,
  CAIRN_UNKNOWN = 2,
  CAIRN_INVALID_ARGUMENT = 3,
  CAIRN_DEADLINE_EXCEEDED = 4,
  CAIRN_NOT_FOUND = 5,
  CAIRN_ALREADY_EXISTS = 6,
  CAIRN_PERMISSION_DENIED = 7,
  CAIRN_RESOURCE_EXHAUSTED = 8,
  CAIRN_FAILED_PRECONDITION = 9,
  CAIRN_ABORTED = 10,
  CAIRN_OUT_OF_RANGE = 11,
  CAIRN_UNIMPLEMENTED = 12,
  CAIRN_INTERNAL = 13,
  CAIRN_UNAVAILABLE = 14,
  CAIRN_DATA_LOSS = 15,
  CAIRN_UNAUTHENTICATED = 16
};

typedef struct cairn_error cairn_error;  // immutable and thread-safe

// Return the code and the message of an error, and free it. The message is valid until then.
CAIRN_C_API int32_t cairn_error_code(const cairn_error* error);         // CAIRN_OK for NULL
CAIRN_C_API const char* cairn_error_message(const cairn_error* error);  // "" for NULL
CAIRN_C_API void cairn_error_free(cairn_error* error);

// Frees a string that a function of this API returned.
CAIRN_C_API void cairn_text_free(char* text);

// A flag that cancels the calls that it is passed to, which then return CAIRN_CANCELLED. Any thread
// or signal handler may set it. It must outlive those calls.
typedef struct cairn_cancel cairn_cancel;

// Create, set and free a flag.
CAIRN_C_MUST_USE cairn_error* cairn_cancel_new(cairn_cancel** cancel);
CAIRN_C_API void cairn_cancel_set(cairn_cancel* cancel);
CAIRN_C_API void cairn_cancel_free(cairn_cancel* cancel);

// The progress of a build or a compaction. `done` and `total` count rows while scanning, and
// entries afterwards. During a scan, `total` is an estimate.
enum { CAIRN_PHASE_SCAN = 0, CAIRN_PHASE_SORT = 1, CAIRN_PHASE_WRITE = 2 };
typedef struct cairn_progress {
  size_t size;
  int32_t phase;
  uint64_t done;
  uint64_t total;
} cairn_progress;
// Called about ten times per second, never by two threads at the same time. Must return normally.
typedef void (*cairn_on_progress)(void* context, const cairn_progress* progress);

#ifdef __cplusplus
}
#endif
