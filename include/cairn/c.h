#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cairn/c/base.h"

// The C API, for C99 and for other languages' foreign functions: indexes, and batches of keys and
// answers in the structures of Arrow's C data interface. Device batches are in cairn/c/device.h.
//
//   cairn_index* index = NULL;
//   cairn_error* error = cairn_open("/data/city.index", NULL, &index);
//   if (error == NULL) error = cairn_find_first(index, &schema, &keys, NULL, row_ids, count);
//   if (error != NULL) fprintf(stderr, "%s\n", cairn_error_message(error));
//   cairn_error_free(error);
//   cairn_close(index);
//
// Errors: a function that can fail returns NULL, or an error that the caller frees. Codes are those
// of absl::Status, and part of the API as include/cairn says which function gives which; want of
// memory is CAIRN_RESOURCE_EXHAUSTED. After an error, outputs are as they were, but for buffers
// that the caller gave, whose contents are unspecified. Neither exceptions nor C++ types cross.
// Functions that cannot fail take a null handle for one of nothing: 0, false or NULL.
//
// Ownership: what a function makes is freed by the function named after it, which takes NULL, too.
// Texts that go in are UTF-8 or any bytes, end with a zero byte, and are not needed after the call;
// texts that come out are freed by cairn_text_free. An ArrowSchema and ArrowArray that go in are
// borrowed for the call, and not released; those that come out own what they show, and are the
// caller's to release, in any order, before or after the object that made them is gone.
//
// Options: structures that begin with `size`, the size that the caller's compiler gives them. NULL,
// and 0 in any field, stand for the default: cairn_..._options_init() makes such a one. Later
// versions add fields at the end.
//
// Threads: an index and a source may be used by any number of threads, but be freed by one, when
// the others are done. Other objects are used by one thread at a time, unless they say otherwise.

#ifdef __cplusplus
extern "C" {
#endif

// A frozen state of one column family: what an index is built from, brought up to, read through and
// verified against (cairn/snapshot_source.h).
typedef struct cairn_source cairn_source;

// A checkpoint or database directory, opened read-only. `column_family`: NULL is "default".
CAIRN_C_MUST_USE cairn_error* cairn_source_from_directory(const char* directory,
                                                          const char* column_family,
                                                          cairn_source** source);
// `count` loose SST files. `scratch_directory`, where links to them are made: NULL is beside the
// first of them.
CAIRN_C_MUST_USE cairn_error* cairn_source_from_sst_files(const char* const* files, size_t count,
                                                          const char* scratch_directory,
                                                          cairn_source** source);
CAIRN_C_API uint64_t cairn_source_sequence(const cairn_source* source);
CAIRN_C_API void cairn_source_free(cairn_source* source);

// Building, in one pass over the rows.

typedef struct cairn_build_target {
  const char* spec;       // "age = value.field(',', 1):u8"; docs/specs.md
  const char* directory;  // created if missing; an index there is replaced by its next version
} cairn_build_target;

typedef struct cairn_build_options {
  size_t size;
  // From 0, one per core that this process may use, to 4096; so in every structure that has it.
  int32_t threads;
  uint64_t memory_budget;  // bytes for entries that wait to be sorted; 0: half of the machine's
  cairn_on_progress on_progress;
  void* context;  // of on_progress
  const cairn_cancel* cancel;
  // Not 0: the search structure of numbers is stored, and mapped when the index is opened; its file
  // is nearly twice as large.
  int32_t prebuild_search_structure;
  int32_t reserved;  // 0
} cairn_build_options;
CAIRN_C_INIT(cairn_build_options)

typedef struct cairn_build_report {
  size_t size;
  uint64_t rows;  // in the column family
  uint64_t entries;
  uint64_t rows_skipped;  // could not be read (on_error=skip)
  uint64_t rows_without_key;
  const char* first_skipped;  // primary key and why, or ""
} cairn_build_report;

typedef struct cairn_build_reports cairn_build_reports;  // one a target; immutable

// Builds `count` indexes. `reports` may be NULL.
CAIRN_C_MUST_USE cairn_error* cairn_build(const cairn_source* source,
                                          const cairn_build_target* targets, size_t count,
                                          const cairn_build_options* options,
                                          cairn_build_reports** reports);
// Report i, valid until the reports are freed; NULL where there is none.
CAIRN_C_API const cairn_build_report* cairn_build_reports_at(const cairn_build_reports* reports,
                                                             size_t i);
CAIRN_C_API void cairn_build_reports_free(cairn_build_reports* reports);

// An open index (cairn/secondary_index.h).

enum { CAIRN_VERIFY_FULL = 0, CAIRN_VERIFY_METADATA = 1 };
enum { CAIRN_ON_CPU = 0, CAIRN_ON_GPU = 1, CAIRN_ON_AUTO = 2 };
// STORE writes the results of trials into the index's directory; the others write nothing.
enum {
  CAIRN_CALIBRATION_STORED = 0,
  CAIRN_CALIBRATION_TRIALS = 1,
  CAIRN_CALIBRATION_NONE = 2,
  CAIRN_CALIBRATION_STORE = 3
};

typedef struct cairn_open_options {
  size_t size;
  int32_t verify;       // CAIRN_VERIFY_…
  int32_t device;       // CAIRN_ON_…
  int32_t calibration;  // CAIRN_CALIBRATION_…
  int32_t threads;
  uint64_t host_memory_budget;    // bytes for search structures; 0: half of the available memory
  uint64_t device_memory_budget;  // of each GPU; 0: half of its memory
  const char* const* structures;  // factory strings, as "cpu:packed"; NULL: as `device` says
  size_t structures_count;
  const int32_t* devices;  // the GPUs, by CUDA ordinal: OpenOptions::devices; NULL: the first
  size_t devices_count;
} cairn_open_options;
CAIRN_C_INIT(cairn_open_options)

typedef struct cairn_index cairn_index;

CAIRN_C_MUST_USE cairn_error* cairn_open(const char* directory, const cairn_open_options* options,
                                         cairn_index** index);
// The index as it is now, as an index of its own: neither cairn_catch_up nor cairn_index_compact of
// `index` changes it, row ids included. Use one for calls that belong together, as cairn_find and
// cairn_primary_keys, if another thread may compact between them. Takes no time. It may outlive
// `index`, keeps the files of its version until it is closed, and refuses cairn_catch_up and
// cairn_index_compact with CAIRN_FAILED_PRECONDITION.
CAIRN_C_MUST_USE cairn_error* cairn_pin(const cairn_index* index, cairn_index** pinned);
CAIRN_C_API void cairn_close(cairn_index* index);
// Whether it is an index in shards (cairn/sharding.h), which cairn_open opens as any. Its rows take
// 64 bits: a shard's number above, the row id in that shard below.
CAIRN_C_API bool cairn_in_shards(const cairn_index* index);

// What becomes of a null: the row gives no entry, or one before or behind all values.
enum { CAIRN_NULLS_SKIP = 0, CAIRN_NULLS_FIRST = 1, CAIRN_NULLS_LAST = 2 };

typedef struct cairn_columns_options {
  size_t size;
  const char* structure;    // a factory string; NULL: "cpu:auto"
  const uint32_t* row_ids;  // one a key, none of them CAIRN_NO_ROW; NULL: the keys' positions
  int32_t nulls;            // CAIRN_NULLS_…
  int32_t threads;
} cairn_columns_options;
CAIRN_C_INIT(cairn_columns_options)

// An index over columns in memory, in any order, which are copied: an array of keys or, for keys of
// several parts, a struct array with a child a part. The types are the arrays'. It answers
// cairn_find_first, _contains, _find, _count and _scan without cursors; what needs a database is
// CAIRN_FAILED_PRECONDITION.
CAIRN_C_MUST_USE cairn_error* cairn_index_from_columns(const struct ArrowSchema* schema,
                                                       const struct ArrowArray* keys,
                                                       const cairn_columns_options* options,
                                                       cairn_index** index);

// The physical kind of keys: 32-bit or 64-bit unsigned integers, or byte strings.
enum { CAIRN_KIND_U32 = 1, CAIRN_KIND_U64 = 2, CAIRN_KIND_BYTES = 3 };
CAIRN_C_API int32_t cairn_kind(const cairn_index* index);
// The sequence number of the database that the index is current to; 0 for one over columns.
CAIRN_C_API uint64_t cairn_sequence(const cairn_index* index);
// The spec's canonical text; of an index over columns its key types, as "u32,text".
CAIRN_C_MUST_USE cairn_error* cairn_spec(const cairn_index* index, char** text);
// IndexStats (cairn/secondary_index.h) as a JSON object whose members have the names of its fields.
CAIRN_C_MUST_USE cairn_error* cairn_stats(const cairn_index* index, char** json);

// Queries, all by the batch. Keys are logical values: an array or, for keys of several parts, a
// struct array with a child a part. The types are the parts': uint8 … int64, float and double are
// u8 … i64, f32 and f64; text and bytes are utf8, binary, their large and view forms, or fixed-size
// binary. Slices are taken as such. Keys of one u32 or u64 part without nulls are read where they
// are, and so is text; others are encoded into a copy. A null is an error unless the index's spec
// has nulls=first or nulls=last. Errors name the key, the part, what was expected and found.

#define CAIRN_NO_ROW UINT32_MAX  // where a key has no row

enum { CAIRN_ASCENDING = 0, CAIRN_DESCENDING = 1 };

// QueryOptions (cairn/query.h). An index over columns heeds the first three, and refuses a route
// and to explain.
typedef struct cairn_query_options {
  size_t size;
  int32_t order;               // of a scan: CAIRN_ASCENDING or CAIRN_DESCENDING
  int32_t with_keys;           // whether a scan also returns each entry's key
  uint64_t limit;              // of entries for each range of a scan; 0: none
  uint64_t latency_target_ns;  // 0: none
  int32_t sorted_input;        // whether the caller knows that the batch's keys ascend
  const char* route;           // by name; NULL: the router chooses
  char** explain;  // if not NULL, set to a JSON object of Explain (cairn/query.h), or to NULL
  const char* const* columns;  // of finds and scans: names of included columns to return, too
  size_t column_count;
} cairn_query_options;
CAIRN_C_INIT(cairn_query_options)

// The lowest row of each key, or CAIRN_NO_ROW. `size` is the batch's.
CAIRN_C_MUST_USE cairn_error* cairn_find_first(const cairn_index* index,
                                               const struct ArrowSchema* schema,
                                               const struct ArrowArray* keys,
                                               const cairn_query_options* options,
                                               uint32_t* row_ids, size_t size);
#define CAIRN_NO_GLOBAL_ROW UINT64_MAX
// The same as rows of 64 bits, or CAIRN_NO_GLOBAL_ROW: of every index of a database, and the one
// way that an index in shards has.
CAIRN_C_MUST_USE cairn_error* cairn_find_first_global(const cairn_index* index,
                                                      const struct ArrowSchema* schema,
                                                      const struct ArrowArray* keys,
                                                      const cairn_query_options* options,
                                                      uint64_t* rows, size_t size);
// Whether any row has each key.
CAIRN_C_MUST_USE cairn_error* cairn_contains(const cairn_index* index,
                                             const struct ArrowSchema* schema,
                                             const struct ArrowArray* keys,
                                             const cairn_query_options* options, bool* found,
                                             size_t size);

// The rows that each query of a batch found: query i's are row_ids[offsets[i]] …
// row_ids[offsets[i + 1] - 1]. One object may take the answers of many batches, one after another;
// a call that fails leaves it as it was, or empty.
typedef struct cairn_matches cairn_matches;

CAIRN_C_MUST_USE cairn_error* cairn_matches_new(cairn_matches** matches);
CAIRN_C_API void cairn_matches_free(cairn_matches* matches);
CAIRN_C_API size_t cairn_matches_size(const cairn_matches* matches);  // queries
// size + 1 offsets, of which the first is 0; and as many row ids as the last one says. Valid until
// the object changes.
CAIRN_C_API const uint64_t* cairn_matches_offsets(const cairn_matches* matches);
CAIRN_C_API const uint32_t* cairn_matches_row_ids(const cairn_matches* matches);
// The shard of each row id; NULL where the index was not in shards.
CAIRN_C_API const uint32_t* cairn_matches_shards(const cairn_matches* matches);
// Moves the answers out, without a copy: a large_list a query of row ids (uint32, of an index in
// shards uint64) or, of a scan with keys, of structs {row_id, key}. Keys have the types of the
// parts, as queries do; text and bytes are large_binary.
CAIRN_C_MUST_USE cairn_error* cairn_matches_export(cairn_matches* matches,
                                                   struct ArrowSchema* schema,
                                                   struct ArrowArray* array);
// Moves the columns that were asked for out, without a copy: a struct array with a child a column,
// by name, of the column's type, and an item a row of all queries together, in their order. Text
// and bytes are large_binary.
CAIRN_C_MUST_USE cairn_error* cairn_matches_columns(cairn_matches* matches,
                                                    struct ArrowSchema* schema,
                                                    struct ArrowArray* array);
// Of a scan with a limit, where each range goes on (cairn_ranges): a copy, as large_binary.
CAIRN_C_MUST_USE cairn_error* cairn_matches_cursors(const cairn_matches* matches,
                                                    struct ArrowSchema* schema,
                                                    struct ArrowArray* array);

// All rows of each key.
CAIRN_C_MUST_USE cairn_error* cairn_find(const cairn_index* index, const struct ArrowSchema* schema,
                                         const struct ArrowArray* keys,
                                         const cairn_query_options* options,
                                         cairn_matches* matches);

// Ranges of keys. `size` stands for the structure's, as in options.

enum {
  CAIRN_BETWEEN =
      0,            // from lower[i] to upper[i]; without one of the two, all ranges are open there
  CAIRN_EQUAL = 1,  // the keys whose leading parts are lower[i]: as many parts as `lower` has
  CAIRN_PREFIX = 2  // likewise, but the last of them, text or bytes, is a prefix
};
enum {
  CAIRN_BOUND_DEFAULT = 0,    // inclusive below, exclusive above
  CAIRN_BOUND_INCLUSIVE = 1,  // the key belongs to the range
  CAIRN_BOUND_EXCLUSIVE = 2,
  CAIRN_BOUND_OPEN = 3  // no limit at this end; the key is not looked at, but must be one
};

typedef struct cairn_ranges {
  size_t size;
  int32_t kind;         // CAIRN_BETWEEN …
  int32_t lower_bound;  // CAIRN_BOUND_…, of all ranges between keys
  int32_t upper_bound;
  const uint8_t* lower_bounds;  // or one a range; may be NULL
  const uint8_t* upper_bounds;
  const struct ArrowSchema* lower_schema;  // keys, as queries have them
  const struct ArrowArray* lower;          // NULL: open; without upper ones: one range of all keys
  const struct ArrowSchema* upper_schema;
  const struct ArrowArray* upper;          // of CAIRN_BETWEEN only, as many as lower ones
  const struct ArrowSchema* after_schema;  // of scans: cursors, one a range: cairn_matches_cursors
  const struct ArrowArray* after;  // NULL, an empty cursor: the range starts at its beginning
} cairn_ranges;
CAIRN_C_INIT(cairn_ranges)

// The number of entries in each range. `size` is the batch's.
CAIRN_C_MUST_USE cairn_error* cairn_count(const cairn_index* index, const cairn_ranges* ranges,
                                          const cairn_query_options* options, uint64_t* counts,
                                          size_t size);
// The rows of each range by (key, primary key). With a limit, a range that has more has a cursor
// that is not empty; to go on, pass the cursor for that range.
CAIRN_C_MUST_USE cairn_error* cairn_scan(const cairn_index* index, const cairn_ranges* ranges,
                                         const cairn_query_options* options,
                                         cairn_matches* matches);

// The primary key of each row, as large_binary without a copy. CAIRN_OUT_OF_RANGE for an id that is
// no row's. A compaction gives rows other ids: see cairn_pin.
CAIRN_C_MUST_USE cairn_error* cairn_primary_keys(const cairn_index* index, const uint32_t* row_ids,
                                                 size_t size, struct ArrowSchema* schema,
                                                 struct ArrowArray* array);

// The same of rows of 64 bits, of any index.
CAIRN_C_MUST_USE cairn_error* cairn_primary_keys_global(const cairn_index* index,
                                                        const uint64_t* rows, size_t size,
                                                        struct ArrowSchema* schema,
                                                        struct ArrowArray* array);

// The values that these rows, of 64 bits, of any index, have in included columns of these names, as
// cairn_matches_columns. CAIRN_OUT_OF_RANGE for an id that is no row's; CAIRN_INVALID_ARGUMENT,
// naming those that there are, for another column.
CAIRN_C_MUST_USE cairn_error* cairn_columns(const cairn_index* index, const char* const* columns,
                                            size_t column_count, const uint64_t* rows, size_t size,
                                            struct ArrowSchema* schema, struct ArrowArray* array);

// Rows read from a database for a batch of ranges (cairn/secondary_index.h), as cairn_matches.
typedef struct cairn_rows cairn_rows;

CAIRN_C_MUST_USE cairn_error* cairn_rows_new(cairn_rows** rows);
CAIRN_C_API void cairn_rows_free(cairn_rows* rows);
// Entries dropped: the row is gone or no longer matches its query.
CAIRN_C_API uint64_t cairn_rows_stale(const cairn_rows* rows);
// Moves the rows out, without a copy: a large_list a query of structs {row_id, primary_key, value},
// the last two large_binary.
CAIRN_C_MUST_USE cairn_error* cairn_rows_export(cairn_rows* rows, struct ArrowSchema* schema,
                                                struct ArrowArray* array);
CAIRN_C_MUST_USE cairn_error* cairn_rows_cursors(const cairn_rows* rows, struct ArrowSchema* schema,
                                                 struct ArrowArray* array);

// Answers the ranges with whole rows; a row that no longer matches its range is dropped.
CAIRN_C_MUST_USE cairn_error* cairn_fetch(const cairn_index* index, const cairn_source* source,
                                          const cairn_ranges* ranges,
                                          const cairn_query_options* options, cairn_rows* rows);

// The time in nanoseconds that a batch of so many queries is predicted to take, and the least batch
// whose predicted throughput is nine tenths of the highest. 0 and 1 where nothing is known.
enum { CAIRN_FIND_FIRST = 0, CAIRN_CONTAINS = 1, CAIRN_FIND = 2, CAIRN_COUNT = 3, CAIRN_SCAN = 4 };
CAIRN_C_API uint64_t cairn_predicted_time_ns(const cairn_index* index, int32_t operation,
                                             size_t queries);
CAIRN_C_API size_t cairn_best_batch(const cairn_index* index, int32_t operation);

// Updates and checks (cairn/options.h). One update works at a time; queries do not wait for it.

typedef struct cairn_catch_up_options {
  size_t size;
  uint64_t max_bytes_per_second;  // of the log; 0: no limit
  int32_t not_durable;            // whether changes are not written to the index's directory
  int32_t skip_identity_check;    // CatchUpOptions::skip_identity_check
  const cairn_cancel* cancel;
} cairn_catch_up_options;
CAIRN_C_INIT(cairn_catch_up_options)

typedef struct cairn_catch_up_report {
  size_t size;
  uint64_t changes;    // of rows, in the log
  uint64_t rows;       // rows whose keys were extracted again
  uint64_t log_bytes;  // bytes of log that were read
  uint64_t sequence;
} cairn_catch_up_report;
CAIRN_C_INIT(cairn_catch_up_report)

typedef struct cairn_compact_options {
  size_t size;
  int32_t threads;
  uint64_t max_bytes_per_second;  // of keys and row ids written; 0: no limit
  cairn_on_progress on_progress;
  void* context;  // of on_progress
  const cairn_cancel* cancel;
} cairn_compact_options;
CAIRN_C_INIT(cairn_compact_options)

// Brings the index up to the source, from the database's log. `report` may be NULL; else its size
// says which fields it has.
CAIRN_C_MUST_USE cairn_error* cairn_catch_up(cairn_index* index, const cairn_source* source,
                                             const cairn_catch_up_options* options,
                                             cairn_catch_up_report* report);
// Makes a new base of the base and all that was caught up. Row ids change.
CAIRN_C_MUST_USE cairn_error* cairn_index_compact(cairn_index* index,
                                                  const cairn_compact_options* options);
CAIRN_C_API bool cairn_index_should_compact(const cairn_index* index);

// Checks the structure.
CAIRN_C_MUST_USE cairn_error* cairn_verify(const cairn_index* index);
// And against the database: *differences is set to a line for each of the first `max_differences`,
// or to NULL where there is none.
CAIRN_C_MUST_USE cairn_error* cairn_verify_against(const cairn_index* index,
                                                   const cairn_source* source,
                                                   size_t max_differences, char** differences);

#ifdef __cplusplus
}
#endif
