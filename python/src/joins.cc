// join and count_join, and the class cairn.JoinResult.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/column.h"
#include "cairn/join.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/bindings.h"
#include "python/src/in/arguments.h"
#include "python/src/in/buffer.h"
#include "python/src/index.h"
#include "python/src/out/column.h"
#include "python/src/watched.h"

namespace cairn::python {
namespace {

// The pairs of a join in Python. Immutable.
struct FoundPairs {
  struct Contents {
    cairn::JoinResult rows;
    StringList left_keys, right_keys;  // primary keys
  };
  std::shared_ptr<Contents> contents;
  std::optional<KeyCodec> codec;  // of the left index, if keys were requested
  bool with_primary_keys = false;
  std::vector<std::string> left_columns, right_columns;

  size_t size() const { return contents->rows.size(); }
  SharedColumn Rows(const std::vector<GlobalRowId>& rows) const {
    return SharedColumn::Numbers(DataType::kU64, rows.data(), rows.size(), contents);
  }
  std::optional<SharedColumn> Keys() const {
    if (!codec.has_value()) return std::nullopt;
    return ValueOf(SharedColumn::Keys(*codec, {contents, &contents->rows.keys}));
  }
  SharedColumn Table() const {
    Fields fields = {{"left.row_id", Rows(contents->rows.left)},
                     {"right.row_id", Rows(contents->rows.right)}};
    if (auto keys = Keys()) fields.emplace_back("key", *std::move(keys));
    if (with_primary_keys) {
      fields.emplace_back("left.primary_key",
                          SharedColumn::Bytes({contents, &contents->left_keys}));
      fields.emplace_back("right.primary_key",
                          SharedColumn::Bytes({contents, &contents->right_keys}));
    }
    const auto add = [&](const std::string& side, const std::vector<std::string>& names,
                         const std::vector<ColumnValues>& columns) {
      for (Field& field : SharedColumn::Fields(names, {contents, &columns})) {
        fields.emplace_back(side + field.first, std::move(field.second));
      }
    };
    add("left.", left_columns, contents->rows.left_columns);
    add("right.", right_columns, contents->rows.right_columns);
    return TableOf(size(), std::move(fields));
  }
};

FoundPairs JoinIndexes(nb::handle left, nb::handle right, BoolArg<"with_keys"> with_keys,
                       BoolArg<"primary_keys"> with_primary_keys,
                       NamesArg<"left_columns"> left_columns,
                       NamesArg<"right_columns"> right_columns, LimitArg<"limit"> given_limit,
                       nb::handle after, TimeoutArg timeout) {
  const auto of_left = IndexOf(left, "left").OpenSecondary();
  const auto of_right = IndexOf(right, "right").OpenSecondary();
  const bool primary_keys = *with_primary_keys;
  FoundPairs found;
  found.contents = std::make_shared<FoundPairs::Contents>();
  if (*with_keys) found.codec = of_left->codec();
  found.with_primary_keys = primary_keys;
  JoinOptions options;
  options.deadline = (*timeout).deadline;
  options.with_keys = *with_keys;
  options.left_columns = *left_columns;
  options.right_columns = *right_columns;
  RequireDistinct(options.left_columns, "left_columns");
  RequireDistinct(options.right_columns, "right_columns");
  options.after = ReadBytes(after, "after");
  const std::optional<Limit> limit = *given_limit;
  if (limit.has_value()) options.limit = limit->most;
  RunQuery([&](const std::atomic<bool>* cancelled) {
    options.cancelled = cancelled;
    QueryOptions pin;
    pin.cancelled = cancelled;
    pin.deadline = options.deadline;
    FoundPairs::Contents& contents = *found.contents;
    // Pinned, so that row ids keep their meaning between the calls.
    const auto pinned_left = of_left->Pin(pin), pinned_right = of_right->Pin(pin);
    absl::Status status = pinned_left.status();
    status.Update(pinned_right.status());
    if (status.ok()) status = Join(**pinned_left, **pinned_right, options, &contents.rows);
    if (status.ok() && primary_keys) {
      status = (*pinned_left)->PrimaryKeys(contents.rows.left, &contents.left_keys);
      status.Update((*pinned_right)->PrimaryKeys(contents.rows.right, &contents.right_keys));
    }
    return status;
  });
  found.left_columns = std::move(options.left_columns);
  found.right_columns = std::move(options.right_columns);
  return found;
}

uint64_t CountPairs(nb::handle left, nb::handle right, TimeoutArg timeout) {
  const auto of_left = IndexOf(left, "left").OpenSecondary();
  const auto of_right = IndexOf(right, "right").OpenSecondary();
  uint64_t pairs = 0;
  JoinOptions options;
  options.deadline = (*timeout).deadline;
  RunQuery([&](const std::atomic<bool>* cancelled) {
    options.cancelled = cancelled;
    const absl::StatusOr<uint64_t> counted = CountJoin(*of_left, *of_right, options);
    if (counted.ok()) pairs = *counted;
    return counted.status();
  });
  return pairs;
}

}  // namespace

void BindJoins(nb::module_& module) {
  nb::class_<FoundPairs> pairs(module, "JoinResult",
                               R"doc(Pairs of rows of two indexes that have the same key.

Pair j consists of rows `left[j]` and `right[j]`. Arrow takes all pairs as a table without a copy:
`pyarrow.table(pairs)`. Its columns are left.row_id, right.row_id and, if requested, key, left.primary_key,
right.primary_key and the included columns, as left.NAME and right.NAME.)doc");
  pairs.def("__len__", &FoundPairs::size, "The number of pairs.")
      .def("__repr__",
           [](const FoundPairs& pairs) {
             return "<cairn.JoinResult of " + std::to_string(pairs.size()) + " pairs>";
           })
      .def_prop_ro(
          "left",
          [](const FoundPairs& pairs) { return ToNumPy(pairs.Rows(pairs.contents->rows.left)); },
          nb::sig("def left(self) -> numpy.typing.NDArray[numpy.uint64]"),
          "uint64[pairs]: the rows of the left index. Read-only, no copy.")
      .def_prop_ro(
          "right",
          [](const FoundPairs& pairs) { return ToNumPy(pairs.Rows(pairs.contents->rows.right)); },
          nb::sig("def right(self) -> numpy.typing.NDArray[numpy.uint64]"),
          "uint64[pairs]: the rows of the right index. Read-only, no copy.")
      .def_prop_ro("keys", &FoundPairs::Keys, "If requested: each pair's key.")
      .def_prop_ro(
          "cursor",
          [](const FoundPairs& pairs) {
            const std::string& cursor = pairs.contents->rows.cursor;
            return nb::bytes(cursor.data(), cursor.size());
          },
          "With a limit: the cursor of the join, for `after=`; empty if it has ended.");
  BindTable(pairs);

  module.def(
      "join", &JoinIndexes, nb::arg("left").none(), nb::arg("right").none(), nb::kw_only(),
      nb::arg("with_keys") = false, nb::arg("primary_keys") = false,
      nb::arg("left_columns") = std::vector<std::string>(),
      nb::arg("right_columns") = std::vector<std::string>(), nb::arg("limit") = nb::none(),
      nb::arg("after").none() = nb::bytes("", 0), nb::arg("timeout") = nb::none(),
      nb::sig(
          "def join(left: Index, right: Index, *, with_keys: bool = False, primary_keys: bool = "
          "False, left_columns: collections.abc.Sequence[str] = (), right_columns: "
          "collections.abc.Sequence[str] = (), limit: int | None = None, after: bytes = b'', "
          "timeout: "
          "float | None = None) -> JoinResult"),
      R"doc(Every pair of a row of `left` and a row of `right` that have the same key, as an SQL inner join.

Pairs are ordered by key, then by the rows in the order of their indexes. A null equals nothing.
`left_columns` and `right_columns` are names of included columns of the indexes. With a `limit`, returns at
most `limit` pairs; `after` takes the cursor of an earlier join and continues there. InvalidArgument if the
types of their keys differ. Other Python threads can run concurrently.)doc");
  module.def("count_join", &CountPairs, nb::arg("left").none(), nb::arg("right").none(),
             nb::kw_only(), nb::arg("timeout") = nb::none(),
             nb::sig("def count_join(left: Index, right: Index, *, timeout: float | None = None) "
                     "-> int"),
             "The number of pairs of rows of two indexes that have the same key.");
}

}  // namespace cairn::python
