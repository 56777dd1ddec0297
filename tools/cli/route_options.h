#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cairn/options.h"
#include "cairn/query.h"
#include "tools/cli/command.h"

namespace cairn::tools {

// How a command that asks a handful of questions opens an index: by binary search over the files as
// they are, since making anything faster would take longer than the answers.
OpenOptions ForFewQueries();

// Where a command's ordered indexes are made: --device and --devices.
class DeviceOptions {
 public:
  void AddTo(CLI::App* app);
  bool given() const { return !device_.empty(); }
  void SetIn(OpenOptions* options) const;

 private:
  std::string device_;
  std::vector<int> devices_;
};

// The route of a command's batches, and its explanation: --device, --devices, --route and
// --explain.
class RouteOptions {
 public:
  void AddTo(CLI::App* app);

  // Whether a device or a route was named, and whether --explain was given.
  bool chooses() const { return device_.given() || !route_.empty(); }
  bool explains() const { return explains_; }

  // How to open the index: with routes to choose from if anything was given, else for few queries.
  OpenOptions Open() const;

  // Has *batch ask for the route, and for its explanation.
  void AddTo(Batch* batch);
  // Takes note of how the last batch was routed, if that is wanted.
  void Note();
  // Prints what was noted to standard error: batches that went the same way, for the same reason,
  // are added up.
  void Print() const;

 private:
  // Batches of one operation that one route answered for one reason, their times added up.
  struct Routed {
    Explain sum;
    uint64_t batches = 0;
    std::map<std::string, uint64_t> failures;  // how often each
  };

  static void PrintBatches(const Routed& routed);
  bool given() const { return chooses() || explains_; }

  DeviceOptions device_;
  std::string route_;
  bool explains_ = false;
  Explain explain_;             // of the last batch
  std::vector<Routed> routed_;  // in the order in which the first batch of each came
};

}  // namespace cairn::tools
