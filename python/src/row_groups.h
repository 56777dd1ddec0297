#pragma once

// The result of cairn.IndexGroup.aggregate.

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/index_group.h"
#include "python/src/out/column.h"

namespace cairn::python {

// Groups of rows and their aggregates. Immutable once Python has it.
class FoundRowGroups {
 public:
  // `names` are those of the group_by columns, then of the aggregates.
  FoundRowGroups(std::shared_ptr<const GroupByResult> groups, std::vector<std::string> names)
      : groups_(std::move(groups)), names_(std::move(names)) {}

  const GroupByResult& groups() const { return *groups_; }
  Fields Keys() const;
  Fields Values() const;
  // A struct per group: the group_by columns, then the aggregates.
  SharedColumn Table() const;

 private:
  const std::shared_ptr<const GroupByResult> groups_;
  const std::vector<std::string> names_;
};

// Adds cairn.GroupByResult to the module.
void BindRowGroups(nb::module_& module);

}  // namespace cairn::python
