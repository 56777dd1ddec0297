#include "tools/cli/route_options.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cairn::tools {
namespace {

// In microseconds, which compare at a glance.
std::string Time(absl::Duration duration) {
  return duration == absl::InfiniteDuration()
             ? "-"
             : absl::StrFormat("%.1f us", absl::ToDoubleMicroseconds(duration));
}

}  // namespace

OpenOptions ForFewQueries() {
  OpenOptions options;
  options.ordered_indexes = {"cpu:sorted_array"};
  options.calibration = Calibration::kNone;
  return options;
}

void RouteOptions::AddTo(CLI::App* app) {
  app->add_option("--device", device_, "Where ordered indexes are made: cpu, gpu or auto (both)")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"cpu", "gpu", "auto"}));
  app->add_option("--route", route_, "The route that answers, by name; see --explain")
      ->type_name("ROUTE");
  app->add_flag("--explain", explains_,
                "Say on standard error how each batch was routed, and how long it took");
}

OpenOptions RouteOptions::Open() const {
  if (!given()) return ForFewQueries();
  OpenOptions options;
  if (device_ == "gpu") {
    options.device = SearchDevice::kGpu;
  } else if (device_ == "auto") {
    options.device = SearchDevice::kAuto;
  }
  return options;
}

void RouteOptions::AddTo(Batch* batch) {
  batch->options.route = route_;
  if (explains_) batch->explain = &explain_;
}

void RouteOptions::Print() const {
  if (!explains_) return;
  std::string text = absl::StrFormat("%s of %d: %s, since %s; predicted %s, measured %s\n",
                                     std::string(OperationName(explain_.operation)),
                                     explain_.queries, explain_.route, explain_.reason,
                                     Time(explain_.predicted), Time(explain_.measured));
  for (const Explain::Candidate& candidate : explain_.candidates) {
    absl::StrAppendFormat(&text, "  %-32s %14s  %s\n", candidate.route, Time(candidate.predicted),
                          candidate.note);
  }
  for (const std::string& failure : explain_.failures) {
    absl::StrAppend(&text, "  failed: ", failure, "\n");
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace cairn::tools
