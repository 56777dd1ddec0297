#pragma once

// The class cairn.Index: a SecondaryIndex, and opening one.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "python/src/in/arguments.h"
#include "python/src/queries.h"

namespace cairn::python {

class Index : public Queries {
 public:
  Index(std::shared_ptr<SecondaryIndex> index, const std::string& directory)
      : Queries(index, index->codec(), "'" + directory + "'"),
        directory_(directory),
        spec_(index->spec().ToString()),
        column_family_(index->spec().column_family),
        in_shards_(index->in_shards()) {}

  std::shared_ptr<SecondaryIndex> OpenSecondary() const {
    return std::static_pointer_cast<SecondaryIndex>(Open());
  }
  bool is_secondary() const override { return true; }
  const std::string& directory() const { return directory_; }
  const std::string& spec() const { return spec_; }
  const std::string& column_family() const { return column_family_; }
  bool in_shards() const override { return in_shards_; }

 private:
  const std::string directory_, spec_, column_family_;
  const bool in_shards_;
};

// The index that a caller passed as `argument`. Throws ArgumentTypeError.
const Index& IndexOf(nb::handle object, const std::string& argument);

// OpenOptions in the form of Python arguments.
struct OpenArguments {
  std::string device;
  std::vector<int> devices;
  std::vector<std::string> ordered_indexes;
  std::string verify, calibration;
  uint64_t host_memory_budget, device_memory_budget;
  int threads;
  std::vector<std::string> aggregates;
};

// Throws InvalidArgument for an unknown name.
OpenOptions OpenOptionsOf(const OpenArguments& arguments);

// The keywords of functions that open an index, for their bindings: parameters of a lambda, the
// OpenArguments made from them, nanobind's arguments, and their signature.
#define CAIRN_OPEN_PARAMETERS                                                                  \
  TextArg<"device"> device, Argument<std::vector<int>, "devices"> devices,                     \
      NamesArg<"ordered_indexes"> ordered_indexes, TextArg<"verify"> verify,                   \
      TextArg<"calibration"> calibration, NaturalArg<"host_memory_budget"> host_memory_budget, \
      NaturalArg<"device_memory_budget"> device_memory_budget, ThreadsArg<"threads"> threads,  \
      NamesArg<"aggregates"> aggregates
#define CAIRN_OPEN_VALUES                                                            \
  OpenArguments {                                                                    \
    *device, *devices, *ordered_indexes, *verify, *calibration, *host_memory_budget, \
        *device_memory_budget, *threads, *aggregates                                 \
  }
#define CAIRN_OPEN_ARGS                                                                  \
  nb::kw_only(), nb::arg("device") = "cpu", nb::arg("devices") = std::vector<int>(),     \
                 nb::arg("ordered_indexes") = std::vector<std::string>(),                \
                 nb::arg("verify") = "full", nb::arg("calibration") = "stored",          \
                 nb::arg("host_memory_budget") = 0, nb::arg("device_memory_budget") = 0, \
                 nb::arg("threads") = 0, nb::arg("aggregates") = std::vector<std::string>()
#define CAIRN_OPEN_SIG                                                                        \
  "device: str = 'cpu', devices: collections.abc.Sequence[int] = (), ordered_indexes: "       \
  "collections.abc.Sequence[str] = (), verify: str = "                                        \
  "'full', "                                                                                  \
  "calibration: str = 'stored', host_memory_budget: int = 0, device_memory_budget: int = 0, " \
  "threads: int = 0, aggregates: collections.abc.Sequence[str] = ()"

}  // namespace cairn::python
