#define BOOST_TEST_MODULE cairn
#include <boost/test/unit_test.hpp>
#include <string>

// Instantiates all functions of std::string, so that RocksDB calls those of this program. RocksDB
// is not built with ThreadSanitizer. Accesses of these functions for RocksDB then have its frames,
// which cmake/tsan.supp suppresses. With libstdc++'s own instantiation, they would be reported as
// races of Cairn.
template class std::basic_string<char>;
