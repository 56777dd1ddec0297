#include "python/src/shard_map.h"

#include "cairn/sharding.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/column.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/in/arguments.h"
#include "python/src/in/keys_in.h"
#include "python/src/in/ranges_in.h"
#include "python/src/index.h"
#include "python/src/out/arrays_out.h"
#include "python/src/out/column.h"
#include "python/src/shard_aggregates.h"
#include "python/src/source.h"

namespace cairn::python {
namespace {

PublishedMap OpenMap(nb::handle directory) {
  const std::string path = PathOf(directory, "directory");
  LeaveForksAtOnce();
  absl::StatusOr<std::unique_ptr<ShardMap>> map = nullptr;
  {
    const GilReleased released;
    map = ShardMap::Open(path);
  }
  return {path, ValueOf(std::move(map))};
}

// Returns a pair of arrays: begin, query_of.
nb::object Pair(ShardQueries queries) {
  const auto held = std::make_shared<const ShardQueries>(std::move(queries));
  return nb::make_tuple(
      ArrayOver(DataType::kU64, held->begin.data(), held->begin.size(), held),
      ArrayOver(DataType::kU32, held->query_of.data(), held->query_of.size(), held));
}

nb::object RouteKeys(const PublishedMap& self, nb::handle keys) {
  const KeysIn in(keys, self.map->codec(), "keys");
  ShardQueries queries;
  absl::Status status;
  {
    const GilReleased released;
    status = self.map->RouteKeys(in.batch(), &queries);
  }
  Check(status);
  return Pair(std::move(queries));
}

nb::object RouteRanges(const PublishedMap& self, const RangeArguments& arguments) {
  const RangesIn in(arguments, self.map->codec());
  ShardQueries queries;
  absl::Status status;
  {
    const GilReleased released;
    status = self.map->RouteRanges(in.batch(), &queries);
  }
  Check(status);
  return Pair(std::move(queries));
}

// Returns a column of the same physical keys.
SharedColumn PhysicalKeys(const PublishedMap& self, nb::handle keys) {
  const KeysIn in(keys, self.map->codec(), "keys");
  const KeyBatch batch = in.batch();
  auto column = std::make_shared<ColumnValues>();
  switch (batch.kind()) {
    case PhysicalType::kU32:
      column->Clear(DataType::kU32);
      Check(column->AppendColumn({batch.u32()}));
      break;
    case PhysicalType::kU64:
      column->Clear(DataType::kU64);
      Check(column->AppendColumn({batch.u64()}));
      break;
    case PhysicalType::kBytes:
      column->Clear(DataType::kBytes);
      Check(column->AppendColumn({batch.bytes()}));
  }
  return SharedColumn::Values(std::move(column));
}

Index* OpenShard(const PublishedMap& self, uint32_t shard, const OpenArguments& arguments) {
  const OpenOptions options = OpenOptionsOf(arguments);
  absl::StatusOr<std::unique_ptr<SecondaryIndex>> index = nullptr;
  {
    const GilReleased released;
    index = self.map->OpenShard(shard, options);
  }
  auto opened = ValueOf(std::move(index));
  return new Index(std::move(opened), self.directory + "/" + self.map->shards()[shard].directory);
}

nb::list Shards(const PublishedMap& self) {
  nb::list shards;
  for (const IndexStats::Shard& shard : self.map->shards()) {
    nb::dict one;
    one["directory"] = TextWithPath(shard.directory);
    one["bounds"] = nb::steal(PyUnicode_DecodeUTF8(
        shard.bounds.data(), static_cast<Py_ssize_t>(shard.bounds.size()), "backslashreplace"));
    one["rows"] = shard.rows;
    one["entries"] = shard.entries;
    one["sequence"] = shard.sequence;
    one["database_id"] = shard.database_id;
    shards.append(one);
  }
  return shards;
}

}  // namespace

void BindShardMap(nb::module_& module) {
  nb::class_<PublishedMap> map(module, "ShardMap",
                               R"doc(One generation of a sharded index, without open shards.

For programs whose processes serve some of the shards each, as cairn.ray does. It routes the queries of a
batch to shards, opens single shards, and combines the aggregates of all shards. Immutable and thread-safe.)doc");
  map.def(
         "__init__",
         [](PublishedMap* self, nb::handle directory) {
           new (self) PublishedMap(OpenMap(directory));
         },
         nb::arg("directory").none(),
         nb::sig("def __init__(self, directory: str | os.PathLike[str]) -> None"),
         "Reads the current generation. NotFound if the directory has no sharded index; "
         "DataLoss.")
      .def_prop_ro(
          "directory", [](const PublishedMap& self) { return TextWithPath(self.directory); },
          nb::sig("def directory(self) -> str"))
      .def_prop_ro(
          "generation", [](const PublishedMap& self) { return self.map->generation(); },
          "The number of times that the index was published: 1 for the first.")
      .def_prop_ro(
          "mode",
          [](const PublishedMap& self) { return std::string(ShardModeName(self.map->mode())); },
          "How entries are distributed: \"key_range\" or \"source\".")
      .def_prop_ro(
          "spec", [](const PublishedMap& self) { return self.map->spec().ToString(); },
          "The spec as text.")
      .def_prop_ro("column_family",
                   [](const PublishedMap& self) { return self.map->spec().column_family; })
      .def_prop_ro(
          "key_types",
          [](const PublishedMap& self) {
            nb::list types;
            for (const DataType type : self.map->codec().parts()) {
              types.append(std::string(DataTypeName(type)));
            }
            return types;
          },
          nb::sig("def key_types(self) -> list[str]"), "As Index.key_types.")
      .def_prop_ro(
          "included",
          [](const PublishedMap& self) {
            nb::dict included;
            for (const IncludedColumn& column : self.map->spec().include) {
              included[nb::str(column.name.data(), column.name.size())] =
                  std::string(DataTypeName(column.value.type));
            }
            return included;
          },
          nb::sig("def included(self) -> dict[str, str]"),
          "Name and type of each column that the index includes.")
      .def_prop_ro("shards", &Shards, nb::sig("def shards(self) -> list[dict[str, typing.Any]]"),
                   "Per shard: directory (in the index's), bounds (human-readable), rows, entries, "
                   "sequence, database_id.")
      .def("__len__", [](const PublishedMap& self) { return self.map->shards().size(); })
      .def("route_keys", &RouteKeys, nb::arg("keys").none(),
           nb::sig("def route_keys(self, keys: typing.Any) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint64], "
                   "numpy.typing.NDArray[numpy.uint32]]"),
           R"doc((begin, query_of): send keys[query_of[begin[s]:begin[s + 1]]] to shard s.

uint64[shards + 1] and uint32. Keys are given as to Index; one may have rows in several shards. If the index
is sharded by source, every shard gets all keys.)doc")
      .def(
          "route_ranges",
          [](const PublishedMap& self, nb::handle lower, nb::handle upper, nb::handle keys,
             nb::handle prefix, nb::handle leading, TextArg<"bounds"> bounds) {
            return RouteRanges(self, {lower, upper, keys, prefix, leading, *bounds, nb::none()});
          },
          nb::arg("lower") = nb::none(), nb::arg("upper") = nb::none(), nb::kw_only(),
          nb::arg("keys") = nb::none(), nb::arg("prefix") = nb::none(),
          nb::arg("leading") = nb::none(), nb::arg("bounds") = "[)",
          nb::sig("def route_ranges(self, lower: typing.Any = None, upper: typing.Any = None, *, "
                  "keys: typing.Any = None, prefix: typing.Any = None, leading: typing.Any = "
                  "None, bounds: str = '[)') -> tuple[numpy.typing.NDArray[numpy.uint64], "
                  "numpy.typing.NDArray[numpy.uint32]]"),
          "As route_keys, for ranges, given as to Index.count.")
      .def("physical_keys", &PhysicalKeys, nb::arg("keys").none(),
           nb::sig("def physical_keys(self, keys: typing.Any) -> Column"),
           "The physical keys, which have the keys' order: uint32, uint64 or bytes. A copy.")
      .def(
          "open",
          [](const PublishedMap& self, Argument<uint32_t, "shard"> shard, CAIRN_OPEN_PARAMETERS) {
            return OpenShard(self, *shard, CAIRN_OPEN_VALUES);
          },
          nb::arg("shard"), CAIRN_OPEN_ARGS,
          nb::sig("def open(self, shard: int, *, " CAIRN_OPEN_SIG ") -> Index"),
          R"doc(Opens a single shard, with the options of cairn.open; budgets are for this shard.

Its rows are numbers of this shard, uint32. OutOfRange if there is no such shard; DataLoss, naming it, if it
is missing, damaged or not the published one; FailedPrecondition if another generation has been published, so
that this one's files may be gone.)doc")
      .def(
          "__repr__",
          [](const PublishedMap& self) {
            return TextWithPath("<cairn.shards.ShardMap of '" + self.directory + "', generation " +
                                std::to_string(self.map->generation()) + ", " +
                                std::to_string(self.map->shards().size()) + " shards>");
          },
          nb::sig("def __repr__(self) -> str"));
  BindShardAggregates(map);
}

}  // namespace cairn::python
