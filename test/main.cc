#define BOOST_TEST_MODULE cairn
#include <boost/test/unit_test.hpp>
