#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cairn/options.h"
#include "cairn/query.h"
#include "tools/cli/command.h"

namespace cairn::tools {

// How a command with a handful of queries opens an index: with binary search over the mapped files,
// since building any faster structure would take longer than the queries.
OpenOptions ForFewQueries();

// The device of a command's ordered indexes: --device and --devices.
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

  // Whether a device or a route, or --explain was given.
  bool chooses() const { return device_.given() || !route_.empty(); }
  bool explains() const { return explains_; }

  // How to open the index: with routes to choose from if anything was given, otherwise for few
  // queries.
  OpenOptions Open() const;

  // Makes *batch use the route and return its explanation.
  void AddTo(Batch* batch);
  // Records how the last batch was routed, if requested.
  void Note();
  // Prints the records to standard error; batches with the same route and reason are added up.
  void Print() const;

 private:
  // Batches of one operation with the same route and reason; their times are added up.
  struct Routed {
    Explain sum;
    uint64_t batches = 0;
    std::map<std::string, uint64_t> failures;  // number of each
  };

  static void PrintBatches(const Routed& routed);
  bool given() const { return chooses() || explains_; }

  DeviceOptions device_;
  std::string route_;
  bool explains_ = false;
  Explain explain_;             // of the last batch
  std::vector<Routed> routed_;  // in the order of the first batch of each
};

}  // namespace cairn::tools
