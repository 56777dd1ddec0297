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

// The facts of a page, as GatherReport finds them and RenderReport draws them. Strings are bytes as
// they were found, long keys cut at kMaxKeyText: nothing is escaped.

// Keys are cut to this many bytes; a cut key ends in kCut.
inline constexpr size_t kMaxKeyText = 200;
inline constexpr const char* kCut = "…";

// How many values lie in each of some intervals of equal width.
struct Histogram {
  double lower = 0;    // where the first interval begins
  double upper = 0;    // where the last one ends; with `whole`, its last number
  bool whole = false;  // whole numbers
  std::vector<uint64_t> counts;
  uint64_t below = 0;  // finite values before the first interval, and after the last one
  uint64_t above = 0;
  double least = 0;  // finite values, these included
  double most = 0;
  double median = 0;
};

// The values that begin with some bytes, and of those the ones that go on in the same way.
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
  uint64_t looked_at = 0;  // values that the counts below add up to, the special ones included
  bool exact = false;      // these are all; else a sample
  std::optional<Histogram> histogram;  // of numbers
  std::vector<PrefixShare> prefixes;   // of text and bytes, in order
  std::vector<SizeCount> lengths;      // of text and bytes, in bytes
  uint64_t nulls = 0;
  uint64_t nans = 0;
  uint64_t lowest = 0;   // minus infinities
  uint64_t highest = 0;  // infinities
};

struct KeyCount {
  std::string key;
  uint64_t entries = 0;
};

struct KeyFacts {
  uint64_t looked_at = 0;                  // entries
  bool exact = false;                      // these are all
  std::vector<PartFacts> parts;            // one a part of the spec
  std::vector<KeyCount> top;               // keys with most entries, counted exactly
  std::vector<SizeCount> keys_by_entries;  // keys by their number of entries; estimated if sampled
  std::string first;
  std::string last;
};

// A batch of `queries` that was answered.
struct BatchTime {
  uint64_t queries = 0;
  double seconds = 0;    // median
  double predicted = 0;  // seconds; 0: nothing was predicted
  bool chosen = false;   // the router takes this route for such a batch
};

struct RouteTimes {
  std::string route;
  std::vector<BatchTime> times;  // by ascending queries
};

// One kind of work, on the routes that the router took.
struct WorkTimes {
  std::string name;
  std::vector<BatchTime> times;
};

struct SpeedFacts {
  bool measured = false;
  double seconds = 0;              // that the measuring took
  uint64_t distinct_queries = 0;   // different keys that the batches were drawn from
  std::vector<RouteTimes> routes;  // first rows of keys that are there
  std::vector<WorkTimes> works;
};

// How far the index's database is ahead of it.
struct FreshnessFacts {
  enum class State : uint8_t {
    kNotAsked,
    kCurrent,     // nothing came since
    kCanCatchUp,  // the log tells all that came: it was read, and nothing was stored
    kCannot,      // CatchUp refuses, `message` says why
    kUnreadable,  // the database could not be read, `message` says why
    kTooLong,     // reading the log was given up
  };
  State state = State::kNotAsked;
  std::string database;
  std::string message;
  SequenceNumber sequence = 0;  // the database's
  uint64_t changes = 0;         // of rows, in the log
  uint64_t rows = 0;            // whose keys were read again
  uint64_t log_bytes = 0;
  double seconds = 0;  // that reading took
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
  std::string database;  // empty: nothing is said of freshness
  SearchDevice device = SearchDevice::kCpu;
  std::vector<int> devices;  // OpenOptions::devices
  bool trials = true;        // false: nothing is timed, no structures are made, files are searched
  double seconds = 2;        // about how long batches are timed
  uint64_t scan_most = uint64_t{1} << 22;  // entries that are all read; of more a sample is
  const std::atomic<bool>* cancelled = nullptr;
};

// Opens an index and looks at it for some seconds. Errors are SecondaryIndex::Open's, or
// Cancelled; a database that cannot be read is a fact of the report, not an error.
absl::StatusOr<Report> GatherReport(const std::string& directory, const ReportOptions& options);

// The page: one XHTML document in UTF-8 that is HTML as well, and needs no other file.
std::string RenderReport(const Report& report);

}  // namespace cairn::tools
