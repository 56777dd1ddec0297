#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"

namespace cairn::tools {

// The facts of a page, from GatherReport to RenderReport. Strings are unescaped bytes; long keys
// are cut at kMaxKeyText.

// Keys are cut to this many bytes; a cut key ends in kCut.
inline constexpr size_t kMaxKeyText = 200;
inline constexpr const char* kCut = "…";

// The number of values in each of some intervals of equal width.
struct Histogram {
  double lower = 0;    // start of the first interval
  double upper = 0;    // end of the last interval; if `whole`, its last number
  bool whole = false;  // whole numbers
  std::vector<uint64_t> counts;
  uint64_t below = 0;  // finite values before the first interval, and after the last one
  uint64_t above = 0;
  double least = 0;  // of the finite values, including those
  double most = 0;
  double median = 0;
};

// The values with some prefix; `longer` divides them by longer prefixes.
struct PrefixShare {
  std::string prefix;
  uint64_t values = 0;
  std::vector<PrefixShare> longer;  // in order; together at most `values`
};

// The number of things whose size is in [least, most].
struct SizeCount {
  uint64_t least = 0;
  uint64_t most = 0;
  uint64_t count = 0;
};

// The values of one part of the key.
struct PartFacts {
  uint64_t looked_at = 0;  // number of values in the counts below, including the special ones
  bool exact = false;      // all values; otherwise a sample
  std::optional<Histogram> histogram;  // of numbers
  std::vector<PrefixShare> prefixes;   // of text and bytes, in order
  std::vector<SizeCount> lengths;      // of text and bytes, in bytes
  uint64_t nulls = 0;
  uint64_t nans = 0;
  uint64_t lowest = 0;   // minus infinity
  uint64_t highest = 0;  // infinity
};

struct KeyCount {
  std::string key;
  uint64_t entries = 0;
};

struct KeyFacts {
  uint64_t looked_at = 0;                  // entries
  bool exact = false;                      // all entries; otherwise a sample
  std::vector<PartFacts> parts;            // one per part of the spec
  std::vector<KeyCount> top;               // keys with the most entries, counted exactly
  std::vector<SizeCount> keys_by_entries;  // keys by their number of entries; estimated if sampled
  std::string first;
  std::string last;
};

// A batch of `queries` that was executed.
struct BatchTime {
  uint64_t queries = 0;
  double seconds = 0;    // median
  double predicted = 0;  // seconds; 0 if there is no prediction
  bool chosen = false;   // the router chooses this route for such a batch
};

struct RouteTimes {
  std::string route;
  std::vector<BatchTime> times;  // by ascending queries
};

// One kind of query, on the routes that the router chose.
struct WorkTimes {
  std::string name;
  std::vector<BatchTime> times;
};

struct SpeedFacts {
  bool measured = false;
  double seconds = 0;              // duration of the measurements
  uint64_t distinct_queries = 0;   // the number of keys from which the batches were drawn
  std::vector<RouteTimes> routes;  // first rows of existing keys
  std::vector<WorkTimes> works;
};

// How far the index's database is ahead of it.
struct FreshnessFacts {
  enum class State : uint8_t {
    kNotAsked,
    kCurrent,     // there are no changes
    kCanCatchUp,  // the log has all changes: it was read, and nothing was stored
    kCannot,      // CatchUp fails with `message`
    kUnreadable,  // the database could not be read; `message` has the error
    kTooLong,     // reading the log took too long
  };
  State state = State::kNotAsked;
  std::string database;
  std::string message;
  SequenceNumber sequence = 0;  // of the database
  uint64_t changes = 0;         // of rows, in the log
  uint64_t rows = 0;            // rows whose keys were extracted again
  uint64_t log_bytes = 0;
  double seconds = 0;  // time for reading the log
  bool merge_would_pay = false;
};

struct FileSize {
  std::string name;
  uint64_t bytes = 0;
};

struct Report {
  std::string title;
  std::string directory;
  IndexSpec spec;
  PhysicalType kind = PhysicalType::kU32;
  IndexStats stats;
  bool should_compact = false;
  std::vector<FileSize> files;      // of the directory, largest first
  std::optional<absl::Time> built;  // when the base's files were written
  KeyFacts keys;
  SpeedFacts speed;
  FreshnessFacts freshness;
  std::string machine;
  std::string version;  // of Cairn
  absl::Time made;
};

struct ReportOptions {
  std::string title;     // empty: the index's name, or its directory's
  std::string database;  // empty: freshness is not reported
  SearchDevice device = SearchDevice::kCpu;
  std::vector<int> devices;  // OpenOptions::devices
  // if false, nothing is timed, no structures are built, and files are searched
  bool trials = true;
  double seconds = 2;  // approximate time for timing batches
  // indexes with at most this many entries are read completely; larger ones are sampled
  uint64_t scan_most = uint64_t{1} << 22;
  const std::atomic<bool>* cancelled = nullptr;
};

// Opens an index and examines it for some seconds. Errors: those of SecondaryIndex::Open, and
// Cancelled. If the database cannot be read, the report says so; that is not an error.
absl::StatusOr<Report> GatherReport(const std::string& directory, const ReportOptions& options);

// Returns the page: one XHTML document in UTF-8 that is also valid HTML, and needs no other files.
std::string RenderReport(const Report& report);

}  // namespace cairn::tools
