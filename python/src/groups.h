#pragma once

// The results of aggregate and group_by of cairn.Index.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "python/src/out/column.h"

namespace cairn::python {

// The groups of each range of a batch. Immutable once Python has it.
class FoundGroups {
 public:
  // `names` are those of the aggregates.
  FoundGroups(std::shared_ptr<const AggregateGroupsResult> groups, std::vector<std::string> names)
      : groups_(std::move(groups)), names_(std::move(names)) {}

  size_t size() const { return groups_->size(); }
  nb::object Offsets() const;
  Fields Keys() const;
  Fields Values() const;
  nb::list Cursors() const { return BytesOf(groups_->cursors); }
  // A struct per group: query, part1 …, and the aggregates.
  SharedColumn Table() const;

 private:
  const std::shared_ptr<const AggregateGroupsResult> groups_;
  const std::vector<std::string> names_;
};

// Adds cairn.AggregateGroupsResult to the module.
void BindGroups(nb::module_& module);

}  // namespace cairn::python
