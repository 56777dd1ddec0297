// The class cairn.Explain.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "cairn/query.h"
#include "python/src/base/errors.h"
#include "python/src/queries.h"

namespace cairn::python {
namespace {

std::string Microseconds(absl::Duration time) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f us", absl::ToDoubleMicroseconds(time));
  return time == absl::InfiniteDuration() ? "never" : text;
}

std::string Represent(const Explain& explain) {
  if (explain.route.empty()) return "<cairn.Explain of no batch yet>";
  std::string text(OperationName(explain.operation));
  text += " of " + std::to_string(explain.queries) + " queries by " + explain.route + ": " +
          explain.reason + "\n  predicted " + Microseconds(explain.predicted) + ", measured " +
          Microseconds(explain.measured) + "\n  searched with " + explain.index;
  for (const Explain::Candidate& candidate : explain.candidates) {
    text += "\n  " + candidate.route + ": " + Microseconds(candidate.predicted);
    if (!candidate.note.empty()) text += " (" + candidate.note + ")";
  }
  for (const std::string& failure : explain.failures) text += "\n  failed: " + failure;
  return text;
}

}  // namespace

Operation OperationOf(const std::string& name) {
  for (size_t i = 0; i < kIndexOperations; ++i) {
    if (OperationName(static_cast<Operation>(i)) == name) return static_cast<Operation>(i);
  }
  ThrowInvalid("operation: expected one of find_first, contains, find, count, scan, found '" +
               name + "'");
}

void BindExplain(nb::module_& module) {
  nb::class_<Explain>(module, "Explain", R"doc(How a batch was routed; str() describes it.

Pass one as `explain=` to a query, which fills it. Times are in seconds.)doc")
      .def(nb::init<>())
      .def("__repr__", &Represent)
      .def_prop_ro("operation",
                   [](const Explain& e) { return std::string(OperationName(e.operation)); })
      .def_ro("queries", &Explain::queries)
      .def_ro("expected_rows", &Explain::expected_rows,
              "Rows expected for the whole batch; find and scan only.")
      .def_ro("route", &Explain::route, "The route that executed the batch.")
      .def_ro("index", &Explain::index, "The route's ordered index, as stats() describes it.")
      .def_ro("reason", &Explain::reason, "Why the route was chosen.")
      .def_prop_ro("predicted", [](const Explain& e) { return absl::ToDoubleSeconds(e.predicted); })
      .def_prop_ro(
          "measured", [](const Explain& e) { return absl::ToDoubleSeconds(e.measured); },
          "Time from the C++ call to its results.")
      .def_ro("failures", &Explain::failures, "Errors of routes that were tried first.")
      .def_prop_ro(
          "candidates",
          [](const Explain& e) {
            nb::list candidates;
            for (const Explain::Candidate& candidate : e.candidates) {
              candidates.append(nb::make_tuple(
                  candidate.route, absl::ToDoubleSeconds(candidate.predicted), candidate.note));
            }
            return candidates;
          },
          nb::sig("def candidates(self) -> list[tuple[str, float, str]]"),
          "(route, predicted time, note) of all routes, the fastest first.");
}

}  // namespace cairn::python
