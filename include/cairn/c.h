#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cairn/c/base.h"

// The C API, for C99 and for foreign function interfaces of other languages: indexes, and batches
// of keys and results in the structures of Arrow's C data interface. Device batches are in
// cairn/c/device.h.
//
//   cairn_index* index = NULL;
//   cairn_error* error = cairn_open("/data/city.index", NULL, &index);
//   if (error == NULL) error = cairn_find_first(index, &schema, &keys, NULL, row_ids, count);
//   if (error != NULL) fprintf(stderr, "%s\n", cairn_error_message(error));
//   cairn_error_free(error);
//   cairn_close(index);
//
// Errors: a function that can fail returns NULL on success, otherwise an error that the caller
// frees. The codes are those of absl::Status. Codes that the C++ headers document are part of the
// API. If memory runs out, the code is CAIRN_RESOURCE_EXHAUSTED. On error, outputs are unchanged,
// except that the contents of buffers from the caller are unspecified. No exceptions or C++ types
// cross the interface. A function that cannot fail accepts a null handle and then returns 0, false
// or NULL.
//
// Ownership: free an object with the function of its type, which accepts NULL. Input strings are
// UTF-8 or any bytes, end with a zero byte, and are not used after the call. Free output strings
// with cairn_text_free. Input ArrowSchemas and ArrowArrays are borrowed for the call and not
// released. The caller releases output ones, which own their data, in any order, before or after
// the object that created them is freed.
//
// Options: structures that begin with `size`, their size in the caller's compiler. NULL, and 0 in
// any field, mean the default; cairn_..._options_init() returns the default. Later versions add
// fields at the end.
//
// Threads: an index or a source may be used by any number of threads. Free it from one thread, when
// no other thread uses it. Other objects must be used by one thread at a time, unless documented
// otherwise.

#ifdef __cplusplus
extern "C" {
#endif

// A frozen state of one column family, used to build an index, to catch up, to read rows and to
// verify (cairn/snapshot_source.h).
typedef struct cairn_source cairn_source;

// Declares the order of all comparators of this name, for the life of the process: that of bytes
// or, if `reverse` is not 0, the reverse order (cairn/key_order.h). Needed for comparators that are
// neither RocksDB's nor MyRocks'. CAIRN_ALREADY_EXISTS if the name has the other order.
CAIRN_C_MUST_USE cairn_error* cairn_declare_comparator(const char* name, int32_t reverse);

// Opens a checkpoint or database directory, read-only. `column_family` NULL: "default".
CAIRN_C_MUST_USE cairn_error* cairn_source_from_directory(const char* directory,
                                                          const char* column_family,
                                                          cairn_source** source);
// Opens `count` loose SST files. Links to them are created in `scratch_directory`; NULL: in the
// directory of the first file.
CAIRN_C_MUST_USE cairn_error* cairn_source_from_sst_files(const char* const* files, size_t count,
                                                          const char* scratch_directory,
                                                          cairn_source** source);
// Returns the sequence number of the state; 0 for SST files.
CAIRN_C_API uint64_t cairn_source_sequence(const cairn_source* source);
CAIRN_C_API void cairn_source_free(cairn_source* source);

// Building, in one pass over the rows.

// One index of a build: its spec, and where to write it.
typedef struct cairn_build_target {
  const char* spec;       // "age = value.field(',', 1):u8"; docs/specs.md
  const char* directory;  // created if missing; an existing index is replaced by its next version
} cairn_build_target;

// Options of cairn_build: see BuildOptions (cairn/options.h).
typedef struct cairn_build_options {
  size_t size;
  // At most 4096; 0: one per core available to this process. The same for `threads` in other
  // structures.
  int32_t threads;
  uint64_t memory_budget;  // bytes for entries that wait to be sorted; 0: half of the machine's
  cairn_on_progress on_progress;
  void* context;  // argument of on_progress
  const cairn_cancel* cancel;
  // Not 0: stores the search structure of integer keys, which is then mapped when the index is
  // opened. This nearly doubles the size of the file.
  int32_t prebuild_search_structure;
  int32_t reserved;  // 0
} cairn_build_options;
CAIRN_C_INIT(cairn_build_options)

// The result of a build, for one index.
typedef struct cairn_build_report {
  size_t size;
  uint64_t rows;  // in the column family
  uint64_t entries;
  uint64_t rows_skipped;  // could not be read (on_error=skip)
  uint64_t rows_without_key;
  const char* first_skipped;  // primary key and error, or ""
} cairn_build_report;

typedef struct cairn_build_reports cairn_build_reports;  // one per target; immutable

// Builds `count` indexes. `reports` may be NULL.
CAIRN_C_MUST_USE cairn_error* cairn_build(const cairn_source* source,
                                          const cairn_build_target* targets, size_t count,
                                          const cairn_build_options* options,
                                          cairn_build_reports** reports);
// Returns report i, valid until the reports are freed; NULL if there is none.
CAIRN_C_API const cairn_build_report* cairn_build_reports_at(const cairn_build_reports* reports,
                                                             size_t i);
CAIRN_C_API void cairn_build_reports_free(cairn_build_reports* reports);

// An open index (cairn/secondary_index.h).

enum { CAIRN_VERIFY_FULL = 0, CAIRN_VERIFY_METADATA = 1 };
enum { CAIRN_ON_CPU = 0, CAIRN_ON_GPU = 1, CAIRN_ON_AUTO = 2 };
// CAIRN_CALIBRATION_STORE writes measurements to the index directory; the others write nothing.
enum {
  CAIRN_CALIBRATION_STORED = 0,
  CAIRN_CALIBRATION_TRIALS = 1,
  CAIRN_CALIBRATION_NONE = 2,
  CAIRN_CALIBRATION_STORE = 3
};

// Options of cairn_open: see OpenOptions (cairn/options.h).
typedef struct cairn_open_options {
  size_t size;
  int32_t verify;       // CAIRN_VERIFY_…
  int32_t device;       // CAIRN_ON_…
  int32_t calibration;  // CAIRN_CALIBRATION_…
  int32_t threads;
  uint64_t host_memory_budget;    // bytes for search structures; 0: half of the available memory
  uint64_t device_memory_budget;  // on each GPU; 0: half of its memory
  const char* const* structures;  // factory strings, as "cpu:packed"; NULL: depends on `device`
  size_t structures_count;
  const int32_t* devices;  // GPUs, as CUDA ordinals: OpenOptions::devices; NULL: the first
  size_t devices_count;
} cairn_open_options;
CAIRN_C_INIT(cairn_open_options)

// An index: opened from a directory, pinned, or built over columns.
typedef struct cairn_index cairn_index;

// Opens the index in `directory`, which may be sharded. CAIRN_NOT_FOUND if there is none.
CAIRN_C_MUST_USE cairn_error* cairn_open(const char* directory, const cairn_open_options* options,
                                         cairn_index** index);
// Returns the current version of the index as another index. cairn_catch_up and cairn_index_compact
// of `index` do not change it or its row ids. Use it for calls that belong together, such as
// cairn_find and cairn_primary_keys, if another thread may compact the index between them. Takes
// constant time. The pinned index may outlive `index` and keeps the files of its version until it
// is closed. For it, cairn_catch_up and cairn_index_compact return CAIRN_FAILED_PRECONDITION.
CAIRN_C_MUST_USE cairn_error* cairn_pin(const cairn_index* index, cairn_index** pinned);
CAIRN_C_API void cairn_close(cairn_index* index);
// Returns whether the index is sharded (cairn/sharding.h); cairn_open opens sharded indexes like
// any other. Its rows have 64-bit ids: the shard number in the high 32 bits, the row id within the
// shard in the low 32 bits.
CAIRN_C_API bool cairn_in_shards(const cairn_index* index);

// How an index treats a null: no entry, or an entry before or after all values.
enum { CAIRN_NULLS_SKIP = 0, CAIRN_NULLS_FIRST = 1, CAIRN_NULLS_LAST = 2 };

// Options of cairn_index_from_columns.
typedef struct cairn_columns_options {
  size_t size;
  const char* structure;    // factory string; NULL: "cpu:auto"
  const uint32_t* row_ids;  // one per key, none CAIRN_NO_ROW; NULL: key i is of row i
  int32_t nulls;            // CAIRN_NULLS_…
  int32_t threads;
} cairn_columns_options;
CAIRN_C_INIT(cairn_columns_options)

// Builds an index over columns in memory, in any order, which are copied. `keys` is an array of
// keys or, for keys of several parts, a struct array with one child per part. The arrays determine
// the types. The index supports cairn_find_first, cairn_contains, cairn_find, cairn_count and
// cairn_scan without cursors. Functions that need a database return CAIRN_FAILED_PRECONDITION.
CAIRN_C_MUST_USE cairn_error* cairn_index_from_columns(const struct ArrowSchema* schema,
                                                       const struct ArrowArray* keys,
                                                       const cairn_columns_options* options,
                                                       cairn_index** index);

// The physical type of keys: 32-bit or 64-bit unsigned integers, or byte strings.
enum { CAIRN_KIND_U32 = 1, CAIRN_KIND_U64 = 2, CAIRN_KIND_BYTES = 3 };
CAIRN_C_API int32_t cairn_kind(const cairn_index* index);
// Returns the sequence number of the database at which the index is current; 0 for an index over
// columns.
CAIRN_C_API uint64_t cairn_sequence(const cairn_index* index);
// Sets *text to the canonical text of the spec; for an index over columns, to the key types, such
// as "u32,text".
CAIRN_C_MUST_USE cairn_error* cairn_spec(const cairn_index* index, char** text);
// Sets *json to IndexStats (cairn/secondary_index.h) as a JSON object, with the names of its
// fields.
CAIRN_C_MUST_USE cairn_error* cairn_stats(const cairn_index* index, char** json);

// Queries, all in batches. Keys are logical values: an array or, for keys of several parts, a
// struct array with one child per part. The types must match the parts: uint8 … int64, float and
// double are u8 … i64, f32 and f64. Text and bytes are utf8, binary, their large and view forms, or
// fixed-size binary. Slices of arrays are supported, and dictionary-encoded arrays are read as
// their values. Keys of one u32 or u64 part without nulls, and text, are read in place; other keys
// are encoded into a copy. A null is an error unless the spec has nulls=first or nulls=last. Error
// messages name the key, the part, and the expected and actual values.

#define CAIRN_NO_ROW UINT32_MAX  // the key has no row

enum { CAIRN_ASCENDING = 0, CAIRN_DESCENDING = 1 };

// Options of a query; see QueryOptions (cairn/query.h). An index over columns uses `order`,
// `with_keys`, `limit`, `cancel` and `timeout_ns`; CAIRN_INVALID_ARGUMENT if `route`, `explain` or
// `columns` is set.
typedef struct cairn_query_options {
  size_t size;
  int32_t order;               // of a scan: CAIRN_ASCENDING or CAIRN_DESCENDING
  int32_t with_keys;           // a scan also returns the key of each entry
  uint64_t limit;              // entries per range of a scan; 0: no limit
  uint64_t latency_target_ns;  // 0: none
  int32_t sorted_input;        // the keys of the batch are in ascending order
  const char* route;           // name of the route; NULL: the router chooses
  char** explain;  // if not NULL, set to Explain (cairn/query.h) as a JSON object, or to NULL
  const char* const* columns;  // of finds and scans: names of included columns to return
  size_t column_count;
  const cairn_cancel* cancel;  // NULL: the query cannot be cancelled
  // A query that is not complete this time after the call returns CAIRN_DEADLINE_EXCEEDED, within
  // some milliseconds. 0: no limit.
  uint64_t timeout_ns;
} cairn_query_options;
CAIRN_C_INIT(cairn_query_options)

// Sets row_ids[i] to the lowest row of key i, or to CAIRN_NO_ROW. `size` is the number of keys.
// CAIRN_INVALID_ARGUMENT for a sharded index.
CAIRN_C_MUST_USE cairn_error* cairn_find_first(const cairn_index* index,
                                               const struct ArrowSchema* schema,
                                               const struct ArrowArray* keys,
                                               const cairn_query_options* options,
                                               uint32_t* row_ids, size_t size);
#define CAIRN_NO_GLOBAL_ROW UINT64_MAX
// Sets rows[i] to the lowest row of key i as a 64-bit id, or to CAIRN_NO_GLOBAL_ROW. Works for
// every index of a database, and is the only such function for a sharded index.
CAIRN_C_MUST_USE cairn_error* cairn_find_first_global(const cairn_index* index,
                                                      const struct ArrowSchema* schema,
                                                      const struct ArrowArray* keys,
                                                      const cairn_query_options* options,
                                                      uint64_t* rows, size_t size);
// Sets found[i] to whether any row has key i.
CAIRN_C_MUST_USE cairn_error* cairn_contains(const cairn_index* index,
                                             const struct ArrowSchema* schema,
                                             const struct ArrowArray* keys,
                                             const cairn_query_options* options, bool* found,
                                             size_t size);

// The rows found by each query of a batch. Query i found the row ids from offsets[i] up to, but not
// including, offsets[i + 1]. One object can be reused for any number of batches. A failed call
// leaves it unchanged or empty.
typedef struct cairn_matches cairn_matches;

// Create an empty object, free it, and return its number of queries.
CAIRN_C_MUST_USE cairn_error* cairn_matches_new(cairn_matches** matches);
CAIRN_C_API void cairn_matches_free(cairn_matches* matches);
CAIRN_C_API size_t cairn_matches_size(const cairn_matches* matches);  // number of queries
// size + 1 offsets, the first of them 0, and offsets[size] row ids. Valid until the object changes.
CAIRN_C_API const uint64_t* cairn_matches_offsets(const cairn_matches* matches);
CAIRN_C_API const uint32_t* cairn_matches_row_ids(const cairn_matches* matches);
// The shard of each row id; NULL if the index is not sharded.
CAIRN_C_API const uint32_t* cairn_matches_shards(const cairn_matches* matches);
// Moves the results out, without a copy, as one large_list per query: of row ids (uint32; uint64
// for a sharded index), or, for a scan with keys, of structs {row_id, key}. Keys have the types of
// the parts, as in queries; text and bytes are large_binary. Also removes the cursors: read them
// first.
CAIRN_C_MUST_USE cairn_error* cairn_matches_export(cairn_matches* matches,
                                                   struct ArrowSchema* schema,
                                                   struct ArrowArray* array);
// Moves the requested columns out, without a copy, as a struct array. It has one child per column,
// with its name and type, and one item per row of all queries, in order. Text and bytes are
// large_binary. CAIRN_FAILED_PRECONDITION if they were already moved out.
CAIRN_C_MUST_USE cairn_error* cairn_matches_columns(cairn_matches* matches,
                                                    struct ArrowSchema* schema,
                                                    struct ArrowArray* array);
// Returns a copy of the cursors of a scan with a limit, as large_binary: cursor i continues range i
// if it is passed to the next scan (cairn_ranges).
CAIRN_C_MUST_USE cairn_error* cairn_matches_cursors(const cairn_matches* matches,
                                                    struct ArrowSchema* schema,
                                                    struct ArrowArray* array);

// Sets *matches to all rows of each key.
CAIRN_C_MUST_USE cairn_error* cairn_find(const cairn_index* index, const struct ArrowSchema* schema,
                                         const struct ArrowArray* keys,
                                         const cairn_query_options* options,
                                         cairn_matches* matches);

// Ranges of keys. The field `size` is the size of the structure, as in options.

// Kinds and bounds of ranges.
enum {
  CAIRN_BETWEEN =
      0,  // from lower[i] to upper[i]; if one of the two is NULL, all ranges are unbounded there
  CAIRN_EQUAL = 1,  // keys whose leading parts equal lower[i], as many parts as `lower` has
  CAIRN_PREFIX = 2  // as CAIRN_EQUAL, but the last part of `lower`, text or bytes, is a prefix
};
enum {
  CAIRN_BOUND_DEFAULT = 0,    // inclusive below, exclusive above
  CAIRN_BOUND_INCLUSIVE = 1,  // the key is in the range
  CAIRN_BOUND_EXCLUSIVE = 2,
  CAIRN_BOUND_OPEN = 3  // unbounded at this end; the key is ignored, but must be valid
};

// Ranges of keys. A field that is NULL or 0 has its default.
typedef struct cairn_ranges {
  size_t size;
  int32_t kind;         // CAIRN_BETWEEN …
  int32_t lower_bound;  // CAIRN_BOUND_…, of all ranges; CAIRN_BETWEEN only
  int32_t upper_bound;
  const uint8_t* lower_bounds;  // one per range instead; may be NULL
  const uint8_t* upper_bounds;
  const struct ArrowSchema* lower_schema;  // keys, as in queries
  const struct ArrowArray* lower;  // NULL: unbounded; if `upper` is NULL too: one range of all keys
  const struct ArrowSchema* upper_schema;
  const struct ArrowArray* upper;          // CAIRN_BETWEEN only; same size as `lower`
  const struct ArrowSchema* after_schema;  // of scans: one cursor per range: cairn_matches_cursors
  const struct ArrowArray* after;  // NULL, or an empty cursor: start at the beginning of the range
} cairn_ranges;
CAIRN_C_INIT(cairn_ranges)

// Sets counts[i] to the number of entries in range i. `size` is the number of ranges.
CAIRN_C_MUST_USE cairn_error* cairn_count(const cairn_index* index, const cairn_ranges* ranges,
                                          const cairn_query_options* options, uint64_t* counts,
                                          size_t size);
// Sets *matches to the rows of each range in (key, primary key) order. With a limit, a range that
// has more rows gets a cursor that is not empty; pass it for that range to continue.
CAIRN_C_MUST_USE cairn_error* cairn_scan(const cairn_index* index, const cairn_ranges* ranges,
                                         const cairn_query_options* options,
                                         cairn_matches* matches);

// Returns the primary key of each row, as large_binary without a copy. CAIRN_OUT_OF_RANGE for an id
// that does not exist; CAIRN_INVALID_ARGUMENT for a sharded index. A compaction changes row ids:
// see cairn_pin.
CAIRN_C_MUST_USE cairn_error* cairn_primary_keys(const cairn_index* index, const uint32_t* row_ids,
                                                 size_t size, struct ArrowSchema* schema,
                                                 struct ArrowArray* array);

// The same for 64-bit row ids, for any index.
CAIRN_C_MUST_USE cairn_error* cairn_primary_keys_global(const cairn_index* index,
                                                        const uint64_t* rows, size_t size,
                                                        struct ArrowSchema* schema,
                                                        struct ArrowArray* array);

// Returns the values of the rows, as 64-bit ids, in included columns, for any index. The result is
// as in cairn_matches_columns. CAIRN_OUT_OF_RANGE for an id that does not exist;
// CAIRN_INVALID_ARGUMENT, listing the included columns, for an unknown name.
CAIRN_C_MUST_USE cairn_error* cairn_columns(const cairn_index* index, const char* const* columns,
                                            size_t column_count, const uint64_t* rows, size_t size,
                                            struct ArrowSchema* schema, struct ArrowArray* array);

// Rows read from a database for a batch of ranges (cairn/secondary_index.h); used like
// cairn_matches.
typedef struct cairn_rows cairn_rows;

// Create an empty object, and free it.
CAIRN_C_MUST_USE cairn_error* cairn_rows_new(cairn_rows** rows);
CAIRN_C_API void cairn_rows_free(cairn_rows* rows);
// Returns the number of dropped entries, whose row is gone or no longer matches its range.
CAIRN_C_API uint64_t cairn_rows_stale(const cairn_rows* rows);
// Moves the rows out, without a copy, as one large_list per range of structs {row_id, primary_key,
// value}; the last two are large_binary. Also removes the cursors and the number of dropped
// entries: read them first.
CAIRN_C_MUST_USE cairn_error* cairn_rows_export(cairn_rows* rows, struct ArrowSchema* schema,
                                                struct ArrowArray* array);
CAIRN_C_MUST_USE cairn_error* cairn_rows_cursors(const cairn_rows* rows, struct ArrowSchema* schema,
                                                 struct ArrowArray* array);

// Reads the rows of the ranges from `source`. A row that no longer matches its range is dropped.
CAIRN_C_MUST_USE cairn_error* cairn_fetch(const cairn_index* index, const cairn_source* source,
                                          const cairn_ranges* ranges,
                                          const cairn_query_options* options, cairn_rows* rows);

// Returns the predicted latency in nanoseconds of a batch of `queries` queries, and the smallest
// batch whose predicted throughput is at least 90% of the maximum. 0 and 1 if there is no
// prediction.
enum { CAIRN_FIND_FIRST = 0, CAIRN_CONTAINS = 1, CAIRN_FIND = 2, CAIRN_COUNT = 3, CAIRN_SCAN = 4 };
CAIRN_C_API uint64_t cairn_predicted_time_ns(const cairn_index* index, int32_t operation,
                                             size_t queries);
CAIRN_C_API size_t cairn_best_batch(const cairn_index* index, int32_t operation);

// Updates and checks (cairn/options.h). One update runs at a time; queries do not wait for it.

// Options of cairn_catch_up: see CatchUpOptions (cairn/options.h).
typedef struct cairn_catch_up_options {
  size_t size;
  uint64_t max_bytes_per_second;  // of log that is read; 0: no limit
  int32_t not_durable;            // not 0: changes are not written to the index directory
  int32_t skip_identity_check;    // CatchUpOptions::skip_identity_check
  const cairn_cancel* cancel;
} cairn_catch_up_options;
CAIRN_C_INIT(cairn_catch_up_options)

// The result of cairn_catch_up.
typedef struct cairn_catch_up_report {
  size_t size;
  uint64_t changes;    // of rows, in the log
  uint64_t rows;       // rows whose keys were extracted again
  uint64_t log_bytes;  // bytes of log read
  uint64_t sequence;
} cairn_catch_up_report;
CAIRN_C_INIT(cairn_catch_up_report)

// Options of cairn_index_compact: see CompactOptions (cairn/options.h).
typedef struct cairn_compact_options {
  size_t size;
  int32_t threads;
  uint64_t max_bytes_per_second;  // of keys and row ids written; 0: no limit
  cairn_on_progress on_progress;
  void* context;  // argument of on_progress
  const cairn_cancel* cancel;
} cairn_compact_options;
CAIRN_C_INIT(cairn_compact_options)

// Brings the index up to the state of `source`, from the log of the database. If `report` is not
// NULL, its `size` must be set.
CAIRN_C_MUST_USE cairn_error* cairn_catch_up(cairn_index* index, const cairn_source* source,
                                             const cairn_catch_up_options* options,
                                             cairn_catch_up_report* report);
// Compacts the index: merges the delta into a new base. Row ids change.
CAIRN_C_MUST_USE cairn_error* cairn_index_compact(cairn_index* index,
                                                  const cairn_compact_options* options);
CAIRN_C_API bool cairn_index_should_compact(const cairn_index* index);

// Verifies the files and the structure of the index.
CAIRN_C_MUST_USE cairn_error* cairn_verify(const cairn_index* index);
// Verifies the index against the database. Sets *differences to one line for each of the first
// `max_differences` differences, or to NULL if there is none.
CAIRN_C_MUST_USE cairn_error* cairn_verify_against(const cairn_index* index,
                                                   const cairn_source* source,
                                                   size_t max_differences, char** differences);

#ifdef __cplusplus
}
#endif
