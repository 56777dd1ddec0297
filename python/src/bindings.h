#pragma once

#include <nanobind/nanobind.h>

namespace cairn::python {

// Building indexes, and the class cairn.BuildReport.
void BindBuild(nanobind::module_& module);

// The class cairn.Index.
void BindIndex(nanobind::module_& module);

// Joins of two indexes.
void BindJoins(nanobind::module_& module);

// The steps that build an index in shards, and the class cairn.shards.ShardMap.
void BindShards(nanobind::module_& module);

// The classes cairn.IndexGroup and cairn.WhereResult.
void BindWhere(nanobind::module_& module);

// The class cairn.ColumnIndex.
void BindColumnIndex(nanobind::module_& module);

// The class cairn.DeviceIndex.
void BindDevice(nanobind::module_& module);

}  // namespace cairn::python
