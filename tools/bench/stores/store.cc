#include "tools/bench/stores/store.h"

#include <stdexcept>

#include "tools/bench/stores/implementations.h"

namespace cairn::bench {
namespace {

struct Implementation {
  const char* name;
  std::unique_ptr<Store> (*open)(const Schema&, const std::string&);
};

constexpr Implementation kImplementations[] = {
    {"plain", OpenPlainStore},   {"by_hand", OpenByHandStore}, {"cairn", OpenCairnStore},
#ifdef CAIRN_BENCH_LMDB
    {"lmdb", OpenLmdbStore},
#endif
#ifdef CAIRN_BENCH_SQLITE
    {"sqlite", OpenSqliteStore},
#endif
};

}  // namespace

std::vector<std::string> StoreNames() {
  std::vector<std::string> names;
  for (const Implementation& each : kImplementations) names.emplace_back(each.name);
  return names;
}

std::unique_ptr<Store> OpenStore(const std::string& name, const Schema& schema,
                                 const std::string& directory) {
  for (const Implementation& each : kImplementations) {
    if (name == each.name) return each.open(schema, directory);
  }
  throw std::runtime_error("there is no store " + name);
}

}  // namespace cairn::bench
