#pragma once

#include <memory>
#include <string>

#include "tools/bench/stores/store.h"

namespace cairn::bench {

// OpenStore for each store. A store without its library is not defined.
std::unique_ptr<Store> OpenPlainStore(const Schema& schema, const std::string& directory);
std::unique_ptr<Store> OpenByHandStore(const Schema& schema, const std::string& directory);
std::unique_ptr<Store> OpenCairnStore(const Schema& schema, const std::string& directory);
std::unique_ptr<Store> OpenLmdbStore(const Schema& schema, const std::string& directory);
std::unique_ptr<Store> OpenSqliteStore(const Schema& schema, const std::string& directory);

}  // namespace cairn::bench
