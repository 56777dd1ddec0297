#pragma once

#include <stdint.h>

// The structures of Arrow's C data interface and C stream interface, which are a stable ABI
// (https://arrow.apache.org/docs/format/CDataInterface.html). Other headers may define them under
// the same guards.

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char* format;    // the type
  const char* name;      // of a column; may be null
  const char* metadata;  // may be null
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;  // of a dictionary-encoded array; otherwise null

  void (*release)(struct ArrowSchema*);  // null: released or moved
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;  // -1: unknown
  int64_t offset;      // number of values to skip in all buffers
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;

  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  // Each returns 0 or an errno. A released array marks the end.
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);

  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#endif  // ARROW_C_STREAM_INTERFACE

#ifdef __cplusplus
}
#endif
