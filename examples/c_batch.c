/* Batches from C: a database written through RocksDB's C API, two indexes of it, and an index over
 * columns without a database. Keys and answers are Arrow arrays.
 *   c_batch DIRECTORY */
#define _POSIX_C_SOURCE 200809L /* mkdir */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cairn/c.h"
#include "rocksdb/c.h"

enum { kPeople = 10000, kCities = 3 };

/* Arrays whose buffers the caller owns: only the structure itself must be released. */
static void ReleaseSchema(struct ArrowSchema* schema) {
  schema->release = NULL;
}
static void ReleaseArray(struct ArrowArray* array) {
  array->release = NULL;
}
static void Borrow(const char* format, int64_t length, const void** buffers, int64_t n_buffers,
                   struct ArrowSchema* schema, struct ArrowArray* array) {
  memset(schema, 0, sizeof *schema);
  memset(array, 0, sizeof *array);
  schema->format = format;
  schema->name = "";
  schema->release = ReleaseSchema;
  array->length = length;
  array->n_buffers = n_buffers;
  array->buffers = buffers;
  array->release = ReleaseArray;
}

static int Fail(cairn_error* error) {
  fprintf(stderr, "error %d: %s\n", (int)cairn_error_code(error), cairn_error_message(error));
  cairn_error_free(error);
  return 1;
}

static int Wrong(const char* what) {
  fprintf(stderr, "wrong: %s\n", what);
  return 1;
}

/* Creates the directory and its parents; any of them may exist. */
static void MakeDirectories(const char* path) {
  char part[1024];
  for (size_t i = 1; path[i - 1] != '\0'; ++i) {
    if (path[i] != '/' && path[i] != '\0') continue;
    snprintf(part, sizeof part, "%.*s", (int)i, path);
    mkdir(part, 0777);
  }
}

/* A database of people "age,city". */
static int WriteDatabase(const char* path) {
  static const char* const cities[] = {"Lisbon", "Oslo", "Quito", "Riga"};
  char* message = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, path, &message);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  for (int i = 0; i < kPeople && message == NULL; ++i) {
    char key[32], value[32];
    snprintf(key, sizeof key, "person-%05d", i);
    snprintf(value, sizeof value, "%d,%s", i % 90, cities[i % 4]);
    rocksdb_put(db, writing, key, strlen(key), value, strlen(value), &message);
  }
  if (message != NULL) fprintf(stderr, "RocksDB: %s\n", message);
  const int failed = message != NULL;
  rocksdb_free(message);
  rocksdb_writeoptions_destroy(writing);
  if (db != NULL) rocksdb_close(db);
  rocksdb_options_destroy(options);
  return failed;
}

/* Two indexes in one pass over the rows. */
static int Build(const char* database, const char* by_age, const char* by_city) {
  cairn_source* source = NULL;
  cairn_error* error = cairn_source_from_directory(database, NULL, &source);
  if (error != NULL) return Fail(error);
  cairn_build_target targets[2];
  targets[0].spec = "age = value.field(',', 0):u8";
  targets[0].directory = by_age;
  targets[1].spec = "city = value.field(',', 1):text";
  targets[1].directory = by_city;
  cairn_build_options options = cairn_build_options_init();
  options.memory_budget = (uint64_t)64 << 20;
  cairn_build_reports* reports = NULL;
  error = cairn_build(source, targets, 2, &options, &reports);
  cairn_source_free(source);
  if (error != NULL) return Fail(error);
  const uint64_t entries = cairn_build_reports_at(reports, 1)->entries;
  cairn_build_reports_free(reports);
  return entries == kPeople ? 0 : Wrong("entries");
}

/* All people of some cities: keys as utf8, primary keys as large_binary. */
static int FindCities(const cairn_index* index) {
  const int32_t ends[kCities + 1] = {0, 4, 9, 13};
  const void* buffers[3] = {NULL, ends, "OsloParisRiga"};
  struct ArrowSchema schema;
  struct ArrowArray keys;
  Borrow("u", kCities, buffers, 3, &schema, &keys);

  cairn_matches* matches = NULL; /* reusable for many batches */
  cairn_error* error = cairn_matches_new(&matches);
  if (error == NULL) error = cairn_find(index, &schema, &keys, NULL, matches);
  struct ArrowSchema people_schema;
  struct ArrowArray people;
  if (error == NULL) {
    error = cairn_primary_keys(index, cairn_matches_row_ids(matches),
                               (size_t)cairn_matches_offsets(matches)[kCities], &people_schema,
                               &people);
  }
  if (error != NULL) {
    cairn_matches_free(matches);
    return Fail(error);
  }
  const uint64_t* rows = cairn_matches_offsets(matches);
  const int64_t* offsets = (const int64_t*)people.buffers[1];
  const char* bytes = (const char*)people.buffers[2];
  for (int i = 0; i < kCities; ++i) {
    printf("%.*s: %" PRIu64 " people", (int)(ends[i + 1] - ends[i]),
           (const char*)buffers[2] + ends[i], rows[i + 1] - rows[i]);
    if (rows[i + 1] > rows[i]) {
      const uint64_t first = rows[i];
      printf(", first %.*s", (int)(offsets[first + 1] - offsets[first]), bytes + offsets[first]);
    }
    printf("\n");
  }
  const int failed = people.length == kPeople / 2 ? 0 : Wrong("number of people");
  people_schema.release(&people_schema);
  people.release(&people);
  cairn_matches_free(matches);
  return failed;
}

/* The number of people of these ages: ranges [18, 30) and [65, 90). */
static int CountAges(const cairn_index* index) {
  const uint8_t lower_ages[] = {18, 65}, upper_ages[] = {30, 90};
  const void* lower_buffers[2] = {NULL, lower_ages};
  const void* upper_buffers[2] = {NULL, upper_ages};
  struct ArrowSchema lower_schema, upper_schema;
  struct ArrowArray lower, upper;
  Borrow("C", 2, lower_buffers, 2, &lower_schema, &lower);
  Borrow("C", 2, upper_buffers, 2, &upper_schema, &upper);
  cairn_ranges ranges = cairn_ranges_init();
  ranges.lower_schema = &lower_schema;
  ranges.lower = &lower;
  ranges.upper_schema = &upper_schema;
  ranges.upper = &upper;
  uint64_t counts[2];
  cairn_error* error = cairn_count(index, &ranges, NULL, counts, 2);
  if (error != NULL) return Fail(error);
  printf("18 to 29: %" PRIu64 ", 65 to 89: %" PRIu64 "\n", counts[0], counts[1]);
  return counts[0] == 1332 && counts[1] == 2775 ? 0 : Wrong("counts");
}

/* An index over a column of 64-bit numbers, in any order. */
static int AskColumn(void) {
  const int64_t numbers[] = {30, -7, 12, -7};
  const int64_t wanted_numbers[] = {-7, 12, 13};
  const void* buffers[2] = {NULL, numbers};
  const void* wanted_buffers[2] = {NULL, wanted_numbers};
  struct ArrowSchema schema, wanted_schema;
  struct ArrowArray column, wanted;
  Borrow("l", 4, buffers, 2, &schema, &column);
  Borrow("l", 3, wanted_buffers, 2, &wanted_schema, &wanted);
  cairn_index* index = NULL;
  cairn_error* error = cairn_index_from_columns(&schema, &column, NULL, &index);
  uint32_t rows[3];
  if (error == NULL) error = cairn_find_first(index, &wanted_schema, &wanted, NULL, rows, 3);
  cairn_close(index);
  if (error != NULL) return Fail(error);
  return rows[0] == 1 && rows[1] == 2 && rows[2] == CAIRN_NO_ROW ? 0 : Wrong("rows");
}

int main(int argc, char** argv) {
  if (argc != 2 || strlen(argv[1]) > 900) {
    fprintf(stderr, "usage: c_batch DIRECTORY\n");
    return 2;
  }
  char database[1024], by_age[1024], by_city[1024];
  snprintf(database, sizeof database, "%s/people.db", argv[1]);
  snprintf(by_age, sizeof by_age, "%s/age.index", argv[1]);
  snprintf(by_city, sizeof by_city, "%s/city.index", argv[1]);
  MakeDirectories(argv[1]);
  if (WriteDatabase(database) || Build(database, by_age, by_city)) return 1;

  /* From here on, this process and others need only the indexes' directories. */
  cairn_index* city = NULL;
  cairn_index* age = NULL;
  cairn_error* error = cairn_open(by_city, NULL, &city);
  if (error == NULL) error = cairn_open(by_age, NULL, &age);
  int failed = error != NULL ? Fail(error) : FindCities(city) || CountAges(age);
  cairn_close(city);
  cairn_close(age);
  return failed || AskColumn();
}
