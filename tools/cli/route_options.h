#pragma once

#include <string>

#include "cairn/open_options.h"
#include "cairn/query.h"
#include "cairn/route.h"
#include "tools/cli/command.h"

namespace cairn::tools {

// How a command that asks a handful of questions opens an index: by binary search over the files as
// they are, since making anything faster would take longer than the answers.
OpenOptions ForFewQueries();

// How a command's batches are to be answered, and told about: --device, --route and --explain.
class RouteOptions {
 public:
  void AddTo(CLI::App* app);

  // How to open the index: with routes to choose from if anything was given, else for few queries.
  OpenOptions Open() const;

  // Has *batch ask for the route, and for its explanation, which Print then prints.
  void AddTo(Batch* batch);
  // Prints how the last batch was routed to standard error, if that is wanted.
  void Print() const;

 private:
  bool given() const { return !device_.empty() || !route_.empty() || explains_; }

  std::string device_;
  std::string route_;
  bool explains_ = false;
  Explain explain_;
};

}  // namespace cairn::tools
