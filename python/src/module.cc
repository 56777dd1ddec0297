// The extension cairn._cairn.
#include <nanobind/nanobind.h>

#include "cairn/types.h"
#include "cairn/version.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/bindings.h"
#include "python/src/out/column.h"
#include "python/src/out/matches.h"
#include "python/src/queries.h"
#include "python/src/source.h"

NB_MODULE(_cairn, module) {
  using namespace cairn::python;
  module.doc() = "Cairn's C++ library for Python; use the package cairn.";
  RegisterErrors();
  BindExit();
  module.attr("NO_ROW") = cairn::kNoRow;
  module.attr("NO_GLOBAL_ROW") = cairn::kNoGlobalRow;
  module.def("version", &cairn::Version, "The version of the library, as \"0.1.0\".");
  BindColumn(module);
  BindMatches(module);
  BindExplain(module);
  BindQueries(module);
  BindDevice(module);
  BindSnapshot(module);
  BindBuild(module);
  BindIndex(module);
  BindColumnIndex(module);
  BindJoins(module);
  BindShards(module);
  BindWhere(module);
}
