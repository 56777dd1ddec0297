#pragma once

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "engine/source/stored_options.h"
#include "test/engine/source/source_test.h"

namespace cairn {

inline void Fill(rocksdb::DB* db, int operations, std::mt19937_64* random,
                 rocksdb::ColumnFamilyHandle* family = nullptr) {
  if (family == nullptr) family = db->DefaultColumnFamily();
  const rocksdb::WriteOptions write;
  for (int i = 0; i < operations; ++i) {
    const std::string key =
        (*random)() % 20 == 0 ? AdversarialKey(random) : RandomKey(random, 3000);
    if ((*random)() % 6 == 0) {
      CheckOk(db->Delete(write, family, key));
    } else {
      CheckOk(db->Put(write, family, key, RandomValue(random)));
    }
  }
}

// Reads a directory in every way; nothing in it may change.
inline void CheckDirectory(const std::string& path, const Rows& expected, std::mt19937_64* random,
                           const std::string& family = "default") {
  const auto before = DirectoryState(path);
  {
    const auto source = OrDie(SnapshotSource::FromDirectory(path, family));
    CheckSource(*source, expected, random);
    BOOST_TEST(source->column_family() == family);
    CheckMessage(absl::UnknownError(source->description()), {path, family});
  }
  BOOST_TEST((DirectoryState(path) == before));
}

}  // namespace cairn
