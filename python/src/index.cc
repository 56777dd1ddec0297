// The class cairn.Index: a SecondaryIndex.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cairn/cairn.h"
#include "python/src/aggregates.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/bindings.h"
#include "python/src/in/ranges_in.h"
#include "python/src/index.h"
#include "python/src/out/arrays_out.h"
#include "python/src/out/matches.h"
#include "python/src/queries.h"
#include "python/src/source.h"
#include "python/src/stats.h"
#include "python/src/watched.h"

namespace cairn::python {
namespace {

template <typename T>
T OneOf(const char* argument, const std::string& name,
        std::vector<std::pair<const char*, T>> names) {
  std::string expected;
  for (const auto& [known, value] : names) {
    if (name == known) return value;
    expected += (expected.empty() ? "'" : ", '") + std::string(known) + "'";
  }
  ThrowInvalid(std::string(argument) + ": expected one of " + expected + ", found '" + name + "'");
}

Index* OpenIndex(nb::handle directory, const OpenArguments& arguments) {
  const OpenOptions options = OpenOptionsOf(arguments);
  const std::string path = PathOf(directory, "directory");
  LeaveForksAtOnce();
  absl::StatusOr<std::unique_ptr<SecondaryIndex>> index = nullptr;
  {
    const GilReleased released;
    index = SecondaryIndex::Open(path, options);
  }
  return new Index(ValueOf(std::move(index)), path);
}

// The current version, which neither catch_up nor compact changes.
Index* Pinned(const Index& self) {
  const auto index = self.OpenSecondary();
  auto pinned = ValueOf(index->Pin());
  // The pinned version itself rejects catch_up and compact.
  return new Index(std::const_pointer_cast<SecondaryIndex>(std::move(pinned)), self.directory());
}

SharedColumn PrimaryKeys(const Index& self, nb::handle row_ids) {
  const auto index = self.OpenSecondary();
  static const KeyCodec narrow = ValueOf(KeyCodec::Create({DataType::kU32}));
  static const KeyCodec wide = ValueOf(KeyCodec::Create({DataType::kU64}));
  const KeysIn in = KeysIn::OfRows(row_ids, self.in_shards() ? wide : narrow, "row_ids");
  auto keys = std::make_shared<StringList>();
  absl::Status status;
  {
    const GilReleased released;
    status = self.in_shards() ? index->PrimaryKeys(in.batch().u64(), keys.get())
                              : index->PrimaryKeys({in.batch().u32(), {}}, keys.get());
  }
  Check(status);
  return SharedColumn::Bytes(std::move(keys));
}

FoundRows Fetch(const Index& self, nb::handle database, const RangeArguments& arguments,
                std::optional<Limit> limit, Timeout timeout) {
  const auto index = self.OpenSecondary();
  const RangesIn in(arguments, self.codec());
  const auto source = SourceOf(database, "database", self.column_family());
  QueryOptions options;
  if (limit.has_value()) options.limit = limit->most;
  options.deadline = timeout.deadline;
  FetchResult rows;
  absl::Status status;
  {
    const GilReleased released;
    status = index->Fetch(*source, in.batch(), options, &rows);
  }
  Check(status);
  FoundRows found(self.codec(), self.in_shards());
  FoundRows::Contents* contents = found.contents();
  contents->matches.offsets = std::move(rows.offsets);
  contents->matches.row_ids = std::move(rows.row_ids);
  contents->matches.shards = std::move(rows.shards);
  contents->matches.cursors = std::move(rows.cursors);
  contents->primary_keys = std::move(rows.primary_keys);
  contents->values = std::move(rows.values);
  contents->stale = rows.stale;
  found.set_with_primary_keys();
  found.set_with_values();
  return found;
}

CatchUpReport CatchUp(const Index& self, nb::handle database, BoolArg<"durable"> durable,
                      BoolArg<"skip_identity_check"> skip_identity_check,
                      NaturalArg<"max_bytes_per_second"> max_bytes_per_second) {
  const auto index = self.OpenSecondary();
  const auto source = SourceOf(database, "database", self.column_family());
  CatchUpReport report;
  CatchUpOptions options;
  options.durable = *durable;
  options.skip_identity_check = *skip_identity_check;
  options.max_bytes_per_second = *max_bytes_per_second;
  RunWatched(nb::none(), [&](const Watch& watch) {
    options.cancelled = watch.cancelled;
    auto made = index->CatchUp(*source, options);
    if (made.ok()) report = *made;
    return made.status();
  });
  return report;
}

void Compact(const Index& self, ThreadsArg<"threads"> threads,
             NaturalArg<"max_bytes_per_second"> max_bytes_per_second, nb::handle progress) {
  const auto index = self.OpenSecondary();
  CompactOptions options;
  options.threads = *threads;
  options.max_bytes_per_second = *max_bytes_per_second;
  RunWatched(progress, [&](const Watch& watch) {
    options.on_progress = watch.on_progress;
    options.cancelled = watch.cancelled;
    return index->Compact(options);
  });
}

std::vector<std::string> Verify(const Index& self, nb::handle database,
                                NaturalArg<"max_differences"> given, TimeoutArg timeout) {
  const auto index = self.OpenSecondary();
  const size_t max_differences = *given;
  QueryOptions options;
  options.deadline = (*timeout).deadline;
  std::vector<std::string> differences;
  absl::Status status;
  if (database.is_none()) {
    const GilReleased released;
    status = index->Verify(options);
  } else {
    const auto source = SourceOf(database, "database", self.column_family());
    const GilReleased released;
    status = index->VerifyAgainst(*source, max_differences, &differences, options);
  }
  Check(status);
  return differences;
}

// Without the GIL, since a writer may hold the lock that this needs.
uint64_t Entries(const Index& self) {
  const auto index = self.OpenSecondary();
  absl::StatusOr<IndexStats> stats = absl::InternalError("");
  {
    const GilReleased released;
    stats = index->Stats();
  }
  return ValueOf(std::move(stats)).entries;
}

void BindCatchUpReport(nb::module_& module) {
  nb::class_<CatchUpReport>(module, "CatchUpReport", "The result of a catch_up.")
      .def_ro("changes", &CatchUpReport::changes, "Changes of rows in the log.")
      .def_ro("rows", &CatchUpReport::rows, "Rows whose keys were extracted again.")
      .def_ro("log_bytes", &CatchUpReport::log_bytes)
      .def_ro("sequence", &CatchUpReport::sequence)
      .def("__repr__", [](const CatchUpReport& report) {
        return "<cairn.CatchUpReport: " + std::to_string(report.changes) + " changes, sequence " +
               std::to_string(report.sequence) + ">";
      });
}

}  // namespace

const Index& IndexOf(nb::handle object, const std::string& argument) {
  const Index* index = nullptr;
  if (nb::try_cast(object, index) && index != nullptr) return *index;
  const bool is_path = PyUnicode_Check(object.ptr()) || nb::hasattr(object, "__fspath__");
  throw PythonError("ArgumentTypeError",
                    argument + ": expected a cairn.Index, found " + Described(object) +
                        (is_path ? "; open the directory with cairn.open()" : ""));
}

OpenOptions OpenOptionsOf(const OpenArguments& arguments) {
  OpenOptions options;
  options.device = OneOf<SearchDevice>(
      "device", arguments.device,
      {{"cpu", SearchDevice::kCpu}, {"gpu", SearchDevice::kGpu}, {"auto", SearchDevice::kAuto}});
  options.verify =
      OneOf<VerifyLevel>("verify", arguments.verify,
                         {{"full", VerifyLevel::kFull}, {"metadata", VerifyLevel::kMetadata}});
  options.calibration = OneOf<Calibration>("calibration", arguments.calibration,
                                           {{"stored", Calibration::kStored},
                                            {"trials", Calibration::kTrials},
                                            {"none", Calibration::kNone},
                                            {"store", Calibration::kStore}});
  options.devices = arguments.devices;
  options.ordered_indexes = arguments.ordered_indexes;
  options.host_memory_budget = arguments.host_memory_budget;
  options.device_memory_budget = arguments.device_memory_budget;
  options.threads = arguments.threads;
  options.aggregates = arguments.aggregates;
  return options;
}

void BindIndex(nb::module_& module) {
  BindCatchUpReport(module);
  auto index =
      nb::class_<Index, Queries>(
          module, "Index",
          R"doc(A secondary index, opened by cairn.open: its mapped files, and the changes that catch_up has applied.

Thread-safe; queries of several threads run in parallel, and none waits for catch_up or compact. A query sees
one version of the index from beginning to end; pin() keeps one version for several queries. After a fork, the
child must open the index itself.

Keys are logical, of `key_types`, and are given in batches:
- One part that is a number: a one-dimensional, contiguous NumPy array of exactly that type, or an Arrow array
  of it. uint32 and uint64 are searched in place; other types are encoded, which takes a copy. Integers of
  another type, such as NumPy's default int64, are converted; InvalidArgument if the key's type does not have
  a value.
- Text or bytes: an Arrow array of strings or binary (also large ones, views, and chunked ones), whose bytes
  are searched in place. NumPy has no suitable type.
- An Arrow dictionary, such as a categorical of pandas or Polars, is read as its values.
- Several parts: a tuple of columns, one per part, or an Arrow struct array or table.
- Few keys: a range, a list of Python values (of tuples for several parts), or a single value, which is a
  batch of one. None is null.
Anything else is a KeyTypeError, whose message has the conversion.

Rows are uint32. For a sharded index they are uint64, `shard << 32 | row`, since each shard may have 2^32
rows. `row_dtype` and `no_row` are the dtype and the missing row of find_first.)doc")
          .def("primary_keys", &PrimaryKeys, nb::arg("row_ids").none(),
               nb::sig("def primary_keys(self, row_ids: typing.Any) -> Column"),
               R"doc(The primary key of each row, given as `row_dtype`[rows].

compact changes row ids. find(primary_keys=True) and scan(primary_keys=True) return rows and primary keys of
one version, and pin() keeps one version for several calls. Errors: OutOfRange for an id that no row has.)doc")
          .def(
              "pin", &Pinned,
              R"doc(The current version of the index, as an Index that catch_up and compact do not change, including its row ids.

It supports all queries, may outlive this index, and is created in constant time. Its own catch_up and compact
raise FailedPrecondition. Close it when it is no longer needed: it keeps the files of its version.)doc")
          .def(
              "fetch",
              [](const Index& self, nb::handle database, nb::handle keys, nb::handle lower,
                 nb::handle upper, nb::handle prefix, nb::handle leading, TextArg<"bounds"> bounds,
                 LimitArg<"limit"> limit, nb::handle after, TimeoutArg timeout) {
                return Fetch(self, database, {lower, upper, keys, prefix, leading, *bounds, after},
                             *limit, *timeout);
              },
              nb::arg("database").none(), nb::arg("keys") = nb::none(), nb::kw_only(),
              nb::arg("lower") = nb::none(), nb::arg("upper") = nb::none(),
              nb::arg("prefix") = nb::none(), nb::arg("leading") = nb::none(),
              nb::arg("bounds") = "[)", nb::arg("limit") = nb::none(),
              nb::arg("after") = nb::none(), nb::arg("timeout") = nb::none(),
              nb::sig(
                  "def fetch(self, database: typing.Any, keys: typing.Any = None, *, lower: "
                  "typing.Any = None, "
                  "upper: typing.Any = None, prefix: typing.Any = None, leading: typing.Any = "
                  "None, bounds: str = '[)', "
                  "limit: int | None = None, after: collections.abc.Sequence[bytes] | None = None, "
                  "timeout: float | None = None) -> FindResult"),
              R"doc(Whole rows of keys or ranges (as to count), read from `database`: a directory or Snapshot.

Rows that no longer have such a key are dropped and counted in `stale`. FailedPrecondition if `database` is
not the index's database.)doc")
          .def(
              "catch_up", &CatchUp, nb::arg("database").none(), nb::kw_only(),
              nb::arg("durable") = true, nb::arg("skip_identity_check") = false,
              nb::arg("max_bytes_per_second") = 0,
              nb::sig("def catch_up(self, database: typing.Any, *, durable: bool = True, "
                      "skip_identity_check: bool = False, "
                      "max_bytes_per_second: int = 0) -> CatchUpReport"),
              R"doc(Brings the index up to the state of `database`, a directory or Snapshot, from its write-ahead log.

FailedPrecondition if the log does not have all changes since `sequence`, or if it is another database:
rebuild the index then. Ctrl-C ends it.)doc")
          .def("compact", &Compact, nb::kw_only(), nb::arg("threads") = 0,
               nb::arg("max_bytes_per_second") = 0, nb::arg("progress") = nb::none(),
               nb::sig("def compact(self, *, threads: int = 0, max_bytes_per_second: int = 0, "
                       "progress: collections.abc.Callable[[str, int, int], object] | None = None) "
                       "-> None"),
               "Merges the changes of catch_up into the index's base files. Row ids change. Ctrl-C "
               "ends "
               "it.")
          .def(
              "should_compact",
              [](const Index& self) {
                const auto index = self.OpenSecondary();
                const GilReleased released;
                return index->ShouldCompact();
              },
              "Whether compact would make queries so much faster, or the index so much smaller, "
              "that "
              "it "
              "pays.")
          .def(
              "verify", &Verify, nb::arg("database") = nb::none(), nb::kw_only(),
              nb::arg("max_differences") = 100, nb::arg("timeout") = nb::none(),
              nb::sig("def verify(self, database: typing.Any = None, *, max_differences: int = "
                      "100, timeout: float | None = None) -> list[str]"),
              R"doc(Verifies the index's files and structures or, with a database, every row and entry in both directions.

Returns differences from the database as lines, at most `max_differences`; an empty list means that they are
equal. DataLoss for a damaged file.)doc")
          .def(
              "stats",
              [](const Index& self) {
                const auto index = self.OpenSecondary();
                absl::StatusOr<IndexStats> stats = absl::InternalError("");
                {
                  const GilReleased released;
                  stats = index->Stats();
                }
                return StatsDict(ValueOf(std::move(stats)));
              },
              nb::sig("def stats(self) -> dict[str, typing.Any]"),
              "Counts, bytes and routes of the open index, by name. Times are in seconds.")
          .def(
              "predicted_time",
              [](const Index& self, TextArg<"operation"> operation, NaturalArg<"queries"> queries) {
                return absl::ToDoubleSeconds(
                    self.Open()->PredictedTime(OperationOf(*operation), *queries));
              },
              nb::arg("operation"), nb::arg("queries"),
              nb::sig("def predicted_time(self, operation: str, queries: int) -> float"),
              "The predicted latency, in seconds, of a batch of `queries` queries.")
          .def(
              "best_batch",
              [](const Index& self, TextArg<"operation"> operation) {
                return self.Open()->BestBatch(OperationOf(*operation));
              },
              nb::arg("operation"), nb::sig("def best_batch(self, operation: str) -> int"),
              "The smallest batch whose predicted throughput is at least 90% of the maximum.")
          .def("__len__", &Entries, "The number of entries.")
          .def("__bool__", [](const Index&) { return true; })
          .def(
              "__repr__",
              [](const Index& self) {
                return TextWithPath("<cairn.Index " + self.name() + ": " + self.spec() +
                                    (self.closed() ? ", closed>" : ">"));
              },
              nb::sig("def __repr__(self) -> str"))
          .def_prop_ro(
              "directory", [](const Index& self) { return TextWithPath(self.directory()); },
              nb::sig("def directory(self) -> str"))
          .def_prop_ro("spec", &Index::spec, "The spec as text.")
          .def_prop_ro("column_family", &Index::column_family)
          .def_prop_ro("in_shards", &Index::in_shards,
                       "Whether the index is sharded, so that rows have 64 bits.")
          .def_prop_ro(
              "row_dtype",
              [](const Index& self) {
                return nb::module_::import_("numpy").attr("dtype")(self.in_shards() ? "uint64"
                                                                                    : "uint32");
              },
              nb::sig("def row_dtype(self) -> numpy.dtype[typing.Any]"),
              "The NumPy dtype of rows: uint64 for a sharded index, otherwise uint32.")
          .def_prop_ro(
              "no_row", [](const Index& self) { return self.in_shards() ? kNoGlobalRow : kNoRow; },
              "The result of find_first for a key without a row: the largest number of "
              "`row_dtype`.")
          .def_prop_ro(
              "kind",
              [](const Index& self) { return std::string(PhysicalTypeName(self.codec().kind())); },
              "The physical form of keys: \"u32\", \"u64\" or \"bytes\".")
          .def_prop_ro(
              "sequence", [](const Index& self) { return self.OpenSecondary()->sequence(); },
              "The sequence number of the database's state that the index represents.");
  BindAggregates(module, index);
  module.def(
      "open",
      [](nb::handle directory, CAIRN_OPEN_PARAMETERS) {
        return OpenIndex(directory, CAIRN_OPEN_VALUES);
      },
      nb::arg("directory").none(), CAIRN_OPEN_ARGS,
      nb::sig("def open(directory: str | os.PathLike[str], *, " CAIRN_OPEN_SIG ") -> Index"),
      R"doc(Opens the index in a directory; it may be sharded (cairn.shards).

device: "cpu"; "gpu", which fails if no GPU can take the index; "auto": the CPU, and also a GPU if possible.
devices: the GPUs, by CUDA ordinal; none: the first. Shards are assigned to them in turn. An unsharded index
    is on each of them: large batches are split, and if one is lost, the others answer.
ordered_indexes: the search structures to keep, by factory string, such as "cpu:fast"; none: the default of
    `device`.
verify: "full" verifies every section's checksum, "metadata" only headers and the order of keys.
calibration: "stored" uses stored measurements of such a machine; without any, it measures for some tens of
    milliseconds, as "trials" always does. "store" also writes measurements to the directory. "none" uses only
    the first structure.
host_memory_budget, device_memory_budget: bytes; 0: half of the available memory.
threads: 0, one per core, to 4096.
aggregates: included columns whose aggregates are computed now, not on their first use.

Errors: NotFound, DataLoss, InvalidArgument, Unavailable (no GPU), ResourceExhausted.)doc");
}

}  // namespace cairn::python
