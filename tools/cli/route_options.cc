#include "tools/cli/route_options.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cairn::tools {
namespace {

// In microseconds, so that times are easy to compare.
std::string Time(absl::Duration duration) {
  return duration == absl::InfiniteDuration()
             ? "-"
             : absl::StrFormat("%.1f us", absl::ToDoubleMicroseconds(duration));
}

// Adds one more batch's times to a sum of them, candidate by candidate.
void AddTimes(const Explain& batch, Explain* sum) {
  sum->queries += batch.queries;
  sum->predicted += batch.predicted;
  sum->measured += batch.measured;
  for (const Explain::Candidate& candidate : batch.candidates) {
    for (Explain::Candidate& same : sum->candidates) {
      if (same.route == candidate.route) same.predicted += candidate.predicted;
    }
  }
}

}  // namespace

OpenOptions ForFewQueries() {
  OpenOptions options;
  options.ordered_indexes = {"cpu:sorted_array"};
  options.calibration = Calibration::kNone;
  return options;
}

void DeviceOptions::AddTo(CLI::App* app) {
  CLI::Option* const device =
      app->add_option("--device", device_, "The device of ordered indexes: cpu, gpu or auto (both)")
          ->type_name("DEVICE")
          ->check(CLI::IsMember({"cpu", "gpu", "auto"}));
  app->add_option(
         "--devices", devices_,
         "With --device=gpu or auto, the GPUs, by CUDA ordinal. Shards are assigned to them "
         "in turn; an unsharded index is on each (default: 0)")
      ->type_name("N,…")
      ->delimiter(',')
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false)  // the next argument is not a device
      ->needs(device);
}

void DeviceOptions::SetIn(OpenOptions* options) const {
  if (device_ == "gpu") {
    options->device = SearchDevice::kGpu;
  } else if (device_ == "auto") {
    options->device = SearchDevice::kAuto;
  }
  options->devices = devices_;
}

void RouteOptions::AddTo(CLI::App* app) {
  device_.AddTo(app);
  app->add_option("--route", route_, "The route to use, by name; see --explain")
      ->type_name("ROUTE");
  app->add_flag("--explain", explains_,
                "Print on standard error how batches were routed, and their times");
}

OpenOptions RouteOptions::Open() const {
  if (!given()) return ForFewQueries();
  OpenOptions options;
  device_.SetIn(&options);
  return options;
}

void RouteOptions::AddTo(Batch* batch) {
  batch->options.route = route_;
  if (explains_) batch->explain = &explain_;
}

void RouteOptions::Note() {
  if (!explains_) return;
  auto same = std::find_if(routed_.begin(), routed_.end(), [&](const Routed& routed) {
    return routed.sum.operation == explain_.operation && routed.sum.route == explain_.route &&
           routed.sum.reason == explain_.reason;
  });
  if (same == routed_.end()) {
    same = routed_.insert(routed_.end(), {explain_, 1, {}});
  } else {
    AddTimes(explain_, &same->sum);
    ++same->batches;
  }
  for (const std::string& failure : explain_.failures) ++same->failures[failure];
}

void RouteOptions::Print() const {
  for (const Routed& routed : routed_) PrintBatches(routed);
}

void RouteOptions::PrintBatches(const Routed& routed) {
  const Explain& sum = routed.sum;
  std::string text = absl::StrFormat("%s of %d", OperationName(sum.operation), sum.queries);
  if (routed.batches > 1) absl::StrAppendFormat(&text, " in %d batches", routed.batches);
  absl::StrAppendFormat(&text, ": %s, since %s; predicted %s, measured %s\n", sum.route, sum.reason,
                        Time(sum.predicted), Time(sum.measured));
  if (!sum.index.empty()) absl::StrAppend(&text, "  searched with ", sum.index, "\n");
  for (const Explain::Candidate& candidate : sum.candidates) {
    absl::StrAppendFormat(&text, "  %-32s %14s  %s\n", candidate.route, Time(candidate.predicted),
                          candidate.note);
  }
  for (const auto& [failure, times] : routed.failures) {
    absl::StrAppend(&text, "  failed: ", failure,
                    times > 1 ? absl::StrCat(" (", times, " times)") : "", "\n");
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace cairn::tools
