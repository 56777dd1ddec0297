#pragma once

#include <nanobind/nanobind.h>

namespace cairn::python {

// Binds builds of indexes, and the class cairn.BuildReport.
void BindBuild(nanobind::module_& module);

// Binds the class cairn.Index.
void BindIndex(nanobind::module_& module);

// Binds joins of two indexes.
void BindJoins(nanobind::module_& module);

// Binds the steps of building a sharded index, and the class cairn.shards.ShardMap.
void BindShards(nanobind::module_& module);

// Binds the classes cairn.IndexGroup and cairn.WhereResult.
void BindWhere(nanobind::module_& module);

// Binds the class cairn.ColumnIndex.
void BindColumnIndex(nanobind::module_& module);

// Binds the class cairn.DeviceIndex.
void BindDevice(nanobind::module_& module);

}  // namespace cairn::python
