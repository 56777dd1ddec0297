#define BOOST_TEST_MODULE cairn
#include <boost/test/unit_test.hpp>
#include <string>

// All functions of a string, so that RocksDB calls those of this program. Under ThreadSanitizer,
// with which RocksDB is not built, what they read and write for it then has its frames, by which
// cmake/tsan.supp knows it; had libstdc++ a part in it, it would look like a race of ours.
template class std::basic_string<char>;
