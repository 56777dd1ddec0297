#include "python/src/queries.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/time/time.h"
#include "cairn/secondary_index.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/in/arguments.h"
#include "python/src/in/keys_in.h"
#include "python/src/in/ranges_in.h"
#include "python/src/out/arrays_out.h"
#include "python/src/out/matches.h"

namespace cairn::python {
namespace {

std::atomic<int> fork_generation{0};
std::atomic<bool> leave_forks_at_once{false};

void InChild() {
  fork_generation.fetch_add(1);
  if (!leave_forks_at_once.load()) return;
  on_exit(
      [](int status, void*) {
        std::fflush(nullptr);
        _exit(status);
      },
      nullptr);
}

}  // namespace

void LeaveForksAtOnce() {
  leave_forks_at_once.store(true);
}

int ForkGeneration() {
  return fork_generation.load(std::memory_order_relaxed);
}

Queries::Queries(std::shared_ptr<BatchIndex> index, const KeyCodec& codec, std::string name)
    : index_(std::move(index)),
      codec_(codec),
      name_(std::move(name)),
      generation_(ForkGeneration()) {
  LeaveForksAtOnce();
}

Queries::~Queries() {
  // In a child, the threads that the destructor would wait for do not exist. The memory belongs to
  // the parent, and is released with the process.
  if (generation_ != ForkGeneration()) new std::shared_ptr<BatchIndex>(std::move(index_));
}

std::shared_ptr<BatchIndex> Queries::Open() const {
  if (generation_ != ForkGeneration()) {
    throw PythonError("Forked",
                      "the index " + name_ +
                          " was opened before this process was forked, and its threads "
                          "are in the parent: open it in the child, or start processes by spawn");
  }
  const std::lock_guard lock(mutex_);
  if (index_ == nullptr) throw PythonError("Closed", "the index " + name_ + " is closed");
  return index_;
}

bool Queries::closed() const {
  const std::lock_guard lock(mutex_);
  return index_ == nullptr;
}

void Queries::Close() {
  if (generation_ != ForkGeneration()) return;
  std::shared_ptr<BatchIndex> index;
  {
    const std::lock_guard lock(mutex_);
    index.swap(index_);
  }
  const GilReleased released;
  index.reset();
}

namespace {

// The arguments of every query method other than keys.
struct Options {
  std::optional<double> latency_target;
  std::string route;
  bool sorted_input;
  Explain* explain;
  Timeout timeout;

  QueryOptions Make(const Queries& index) const {
    QueryOptions options;
    if (latency_target.has_value()) {
      if (!(*latency_target > 0)) {
        ThrowInvalid("latency_target: expected a number of seconds above 0, found " +
                     std::to_string(*latency_target));
      }
      options.latency_target = absl::Seconds(*latency_target);
    }
    if (!index.is_secondary() && (explain != nullptr || !route.empty())) {
      throw PythonError("Unimplemented",
                        "route, explain: an index over columns has one ordered index, so there "
                        "is no route to choose or explain");
    }
    options.route = route;
    options.sorted_input = sorted_input;
    options.deadline = timeout.deadline;
    return options;
  }
};

// Calls ask(explain), which executes a batch, without the GIL.
template <typename Ask>
void WithoutGil(Explain* explain, Ask ask) {
  Explain explained;
  absl::Status status;
  {
    const GilReleased released;
    status = ask(explain == nullptr ? nullptr : &explained);
  }
  Check(status);
  if (explain != nullptr) *explain = std::move(explained);
}

void Execute(const BatchIndex& index, Batch batch, Explain* explain) {
  WithoutGil(explain, [&](Explain* explained) {
    batch.explain = explained;
    return index.Execute(batch);
  });
}

template <typename Keys>
void CheckApart(const Keys& keys, const OutArray& out) {
  if (keys.overlaps(out.buffer().data(), out.buffer().bytes())) {
    throw PythonError("OutputTypeError",
                      "out: expected memory apart from the keys', found the same");
  }
}

nb::object FindFirst(const Queries& self, nb::handle keys, nb::handle out, const Options& options) {
  const auto index = self.Open();
  const KeysIn in(keys, self.codec(), "keys");
  OutArray rows(in.size(), self.in_shards() ? OutType::kU64 : OutType::kU32, out);
  if (!out.is_none()) CheckApart(in, rows);
  const QueryOptions query = options.Make(self);
  Execute(*index,
          self.in_shards() ? Batch::FindFirst(in.batch(), rows.span<GlobalRowId>(), query)
                           : Batch::FindFirst(in.batch(), rows.span<RowId>(), query),
          options.explain);
  return std::move(rows).object();
}

nb::object Contains(const Queries& self, nb::handle keys, nb::handle out, const Options& options) {
  const auto index = self.Open();
  const KeysIn in(keys, self.codec(), "keys");
  OutArray found(in.size(), OutType::kBool, out);
  if (!out.is_none()) CheckApart(in, found);
  Execute(*index, Batch::Contains(in.batch(), found.span<bool>(), options.Make(self)),
          options.explain);
  return std::move(found).object();
}

// Executes a batch whose rows are written to `found`, and adds their primary keys if requested.
// Rows and primary keys are of one version, since another one may have other rows under these ids.
void AnswerRows(const BatchIndex& index, Batch batch, bool primary_keys, Explain* explain,
                FoundRows* found) {
  if (!primary_keys) return Execute(index, batch, explain);
  FoundRows::Contents* contents = found->contents();
  WithoutGil(explain, [&](Explain* explained) {
    batch.explain = explained;
    const auto pinned = static_cast<const SecondaryIndex&>(index).Pin(batch.options);
    absl::Status status = pinned.ok() ? (*pinned)->Execute(batch) : pinned.status();
    if (!status.ok()) return status;
    return (*pinned)->PrimaryKeys(contents->matches, &contents->primary_keys);
  });
  found->set_with_primary_keys();
}

// The Explain that a caller passed, or null for None.
Explain* ExplainOf(nb::handle object) {
  Explain* explain = nullptr;
  if (object.is_none()) return explain;
  if (nb::try_cast(object, explain) && explain != nullptr) return explain;
  throw PythonError(
      "ArgumentTypeError",
      "explain: expected a cairn.Explain, which the call fills, found " + Described(object));
}

void RequireSecondary(const Queries& self, const char* what) {
  if (!self.is_secondary()) {
    throw PythonError("Unimplemented", std::string("an index over columns has no ") + what);
  }
}

using ColumnNames = std::optional<std::vector<std::string>>;

// Makes a query return included columns.
void AddColumns(const Queries& self, const ColumnNames& columns, QueryOptions* query,
                FoundRows* found) {
  if (!columns.has_value()) return;
  RequireSecondary(self, "included columns");
  RequireDistinct(*columns, "columns");
  query->columns = *columns;
  found->set_columns(*columns);
}

FoundRows Find(const Queries& self, nb::handle keys, bool primary_keys, const ColumnNames& columns,
               const Options& options) {
  const auto index = self.Open();
  if (primary_keys) RequireSecondary(self, "primary keys");
  const KeysIn in(keys, self.codec(), "keys");
  FoundRows found(self.codec(), self.in_shards());
  QueryOptions query = options.Make(self);
  AddColumns(self, columns, &query, &found);
  AnswerRows(*index, Batch::Find(in.batch(), &found.contents()->matches, query), primary_keys,
             options.explain, &found);
  return found;
}

nb::object Count(const Queries& self, const RangeArguments& arguments, nb::handle out,
                 const Options& options) {
  const auto index = self.Open();
  const RangesIn in(arguments, self.codec());
  OutArray counts(in.batch().size(), OutType::kU64, out);
  if (!out.is_none()) CheckApart(in, counts);
  Execute(*index, Batch::Count(in.batch(), counts.span<uint64_t>(), options.Make(self)),
          options.explain);
  return std::move(counts).object();
}

FoundRows Scan(const Queries& self, const RangeArguments& arguments, std::optional<Limit> limit,
               const std::string& order, bool with_keys, bool primary_keys,
               const ColumnNames& columns, const Options& options) {
  const auto index = self.Open();
  if (primary_keys) RequireSecondary(self, "primary keys");
  if (!arguments.after.is_none()) RequireSecondary(self, "cursors");
  if (order != "asc" && order != "desc") {
    ThrowInvalid("order: expected 'asc' or 'desc', found '" + order + "'");
  }
  const RangesIn in(arguments, self.codec());
  QueryOptions query = options.Make(self);
  if (limit.has_value()) query.limit = limit->most;
  query.order = order == "asc" ? Order::kAscending : Order::kDescending;
  query.with_keys = with_keys;
  FoundRows found(self.codec(), self.in_shards());
  AddColumns(self, columns, &query, &found);
  AnswerRows(*index, Batch::Scan(in.batch(), &found.contents()->matches, query), primary_keys,
             options.explain, &found);
  if (with_keys) found.set_with_keys();
  return found;
}

}  // namespace

#define CAIRN_OPTION_ARGS                                                                         \
  nb::arg("latency_target") = nb::none(), nb::arg("route") = "", nb::arg("sorted_input") = false, \
  nb::arg("explain") = nb::none(), nb::arg("timeout") = nb::none()
#define CAIRN_OPTIONS_SIG                                                              \
  "latency_target: float | None = None, route: str = '', sorted_input: bool = False, " \
  "explain: Explain | None = None, timeout: float | None = None)"
#define CAIRN_RANGE_ARGS                                                                         \
  nb::arg("lower") = nb::none(), nb::arg("upper") = nb::none(), nb::kw_only(),                   \
  nb::arg("keys") = nb::none(), nb::arg("prefix") = nb::none(), nb::arg("leading") = nb::none(), \
  nb::arg("bounds") = "[)"
#define CAIRN_RANGE_SIG                                                                    \
  "self, lower: typing.Any = None, upper: typing.Any = None, *, keys: typing.Any = None, " \
  "prefix: typing.Any = None, leading: typing.Any = None, bounds: str = '[)', "

void BindQueries(nb::module_& module) {
  pthread_atfork(nullptr, nullptr, &InChild);
  using Seconds = Argument<std::optional<double>, "latency_target">;
  using Route = TextArg<"route">;
  using Sorted = BoolArg<"sorted_input">;
  using Columns = Argument<ColumnNames, "columns">;

  nb::class_<Queries>(module, "Queries", "The base class of cairn.Index and cairn.ColumnIndex.")
      .def(
          "find_first",
          [](const Queries& self, nb::handle keys, nb::handle out, Seconds time, Route route,
             Sorted sorted, nb::handle explain, TimeoutArg timeout) {
            return FindFirst(self, keys, out,
                             {*time, *route, *sorted, ExplainOf(explain), *timeout});
          },
          nb::arg("keys").none(), nb::kw_only(), nb::arg("out") = nb::none(), CAIRN_OPTION_ARGS,
          nb::sig("def find_first(self, keys: typing.Any, *, out: "
                  "numpy.typing.NDArray[typing.Any] | None = None, " CAIRN_OPTIONS_SIG
                  " -> numpy.typing.NDArray[typing.Any]"),
          R"doc(uint32[keys]: the lowest row of each key, or cairn.NO_ROW. For a sharded index, uint64[keys] and
cairn.NO_GLOBAL_ROW.

Results are written to `out` if it is given. KeyTypeError for keys of another type, OutputTypeError for an
unsuitable `out`. Other Python threads can run concurrently.

`timeout` is in seconds: a call that is not complete by then raises DeadlineExceeded within some milliseconds. All query
methods have it.)doc")
      .def(
          "contains",
          [](const Queries& self, nb::handle keys, nb::handle out, Seconds time, Route route,
             Sorted sorted, nb::handle explain, TimeoutArg timeout) {
            return Contains(self, keys, out,
                            {*time, *route, *sorted, ExplainOf(explain), *timeout});
          },
          nb::arg("keys").none(), nb::kw_only(), nb::arg("out") = nb::none(), CAIRN_OPTION_ARGS,
          nb::sig("def contains(self, keys: typing.Any, *, out: numpy.typing.NDArray[numpy.bool_] "
                  "| None = None, " CAIRN_OPTIONS_SIG " -> numpy.typing.NDArray[numpy.bool_]"),
          "bool[keys]: whether any row has each key. Arguments and errors as find_first.")
      .def(
          "find",
          [](const Queries& self, nb::handle keys, BoolArg<"primary_keys"> primary_keys,
             Columns columns, Seconds time, Route route, Sorted sorted, nb::handle explain,
             TimeoutArg timeout) {
            return Find(self, keys, *primary_keys, *columns,
                        {*time, *route, *sorted, ExplainOf(explain), *timeout});
          },
          nb::arg("keys").none(), nb::kw_only(), nb::arg("primary_keys") = false,
          nb::arg("columns") = nb::none(), CAIRN_OPTION_ARGS,
          nb::sig("def find(self, keys: typing.Any, *, primary_keys: bool = False, columns: "
                  "collections.abc.Sequence[str] | None = None, " CAIRN_OPTIONS_SIG
                  " -> FindResult"),
          R"doc(All rows of each key, and their primary keys if requested.

`columns` are names of columns that the index includes ("include(…)" in its spec). `matches.columns` then has
the rows' values, without a read of the database.)doc")
      .def(
          "count",
          [](const Queries& self, nb::handle lower, nb::handle upper, nb::handle keys,
             nb::handle prefix, nb::handle leading, TextArg<"bounds"> bounds, nb::handle out,
             Seconds time, Route route, Sorted sorted, nb::handle explain, TimeoutArg timeout) {
            return Count(self, {lower, upper, keys, prefix, leading, *bounds, nb::none()}, out,
                         {*time, *route, *sorted, ExplainOf(explain), *timeout});
          },
          CAIRN_RANGE_ARGS, nb::arg("out") = nb::none(), CAIRN_OPTION_ARGS,
          nb::sig("def count(" CAIRN_RANGE_SIG
                  "out: numpy.typing.NDArray[numpy.uint64] | None = None, " CAIRN_OPTIONS_SIG
                  " -> numpy.typing.NDArray[numpy.uint64]"),
          R"doc(uint64[ranges]: the number of entries in each range.

Ranges go from lower[i] to upper[i]; `bounds` defines which ends are included, as in "[)". An end of None is
open. A composite key with fewer parts than the index means the first key that begins with them.
Alternatively, ranges are the entries of each of `keys`; those that start with each `prefix` (text and bytes;
for a composite key, its last given part); or those whose first parts are `leading`.)doc")
      .def(
          "scan",
          [](const Queries& self, nb::handle lower, nb::handle upper, nb::handle keys,
             nb::handle prefix, nb::handle leading, TextArg<"bounds"> bounds,
             LimitArg<"limit"> limit, TextArg<"order"> order, BoolArg<"with_keys"> with_keys,
             BoolArg<"primary_keys"> primary_keys, Columns columns, nb::handle after, Seconds time,
             Route route, Sorted sorted, nb::handle explain, TimeoutArg timeout) {
            return Scan(self, {lower, upper, keys, prefix, leading, *bounds, after}, *limit, *order,
                        *with_keys, *primary_keys, *columns,
                        {*time, *route, *sorted, ExplainOf(explain), *timeout});
          },
          CAIRN_RANGE_ARGS, nb::arg("limit") = nb::none(), nb::arg("order") = "asc",
          nb::arg("with_keys") = false, nb::arg("primary_keys") = false,
          nb::arg("columns") = nb::none(), nb::arg("after") = nb::none(), CAIRN_OPTION_ARGS,
          nb::sig("def scan(" CAIRN_RANGE_SIG
                  "limit: int | None = None, order: str = 'asc', with_keys: bool = False, "
                  "primary_keys: bool = False, columns: collections.abc.Sequence[str] | None = "
                  "None, after: collections.abc.Sequence[bytes] | None = "
                  "None, " CAIRN_OPTIONS_SIG " -> FindResult"),
          R"doc(The rows of each range, by (key, primary key), ascending or descending ("desc").

Ranges are given as to count, and `columns` as to find. With a `limit`, each range returns at most `limit`
entries. `after` takes the `cursors` of the previous call and continues there.)doc")
      .def(
          "explain",
          [](nb::handle self, TextArg<"operation"> operation, nb::args args, nb::kwargs kwargs) {
            const std::string method = *operation;
            OperationOf(method);
            nb::object explain = nb::cast(Explain());
            kwargs["explain"] = explain;
            self.attr(method.c_str())(*args, **kwargs);
            return explain;
          },
          nb::sig("def explain(self, operation: str, *args: typing.Any, **kwargs: typing.Any) -> "
                  "Explain"),
          "How a batch is routed: explain(\"find\", keys) calls find(keys), and returns how it was "
          "answered.")
      .def(
          "on_device",
          [](nb::handle self, nb::handle device, nb::handle structure) {
            return nb::module_::import_("cairn._cairn").attr("on_device")(self, device, structure);
          },
          nb::arg("device").none() = 0, nb::kw_only(), nb::arg("structure").none() = "gpu:auto",
          nb::sig("def on_device(self, device: int = 0, *, structure: str = 'gpu:auto') -> "
                  "DeviceIndex"),
          "A copy of all current entries in the memory of a GPU. Unavailable without one.")
      .def("close", &Queries::Close,
           "Closes the index. Running calls of other threads complete; later ones raise "
           "Closed.")
      .def_prop_ro("closed", &Queries::closed)
      .def_prop_ro(
          "key_types",
          [](const Queries& self) {
            nb::list types;
            for (const DataType type : self.codec().parts())
              types.append(std::string(DataTypeName(type)));
            return types;
          },
          nb::sig("def key_types(self) -> list[str]"),
          "The types of the key's parts, \"u8\" … \"f64\", \"text\", \"bytes\".")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](Queries& self, nb::args) { self.Close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace cairn::python
