// Every virtual function of rocksdb::DB is explicitly handled or listed.
#include "engine/live/database_calls.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace cairn {
BOOST_AUTO_TEST_SUITE(database_calls_test)
namespace {

// A header's text without comments and preprocessor lines.
std::string ReadHeader(const std::string& name) {
  std::ifstream file(std::string(CAIRN_ROCKSDB_HEADERS) + "/" + name);
  BOOST_REQUIRE_MESSAGE(file.good(), "no header " << name << " in " << CAIRN_ROCKSDB_HEADERS);
  std::string text, line;
  while (std::getline(file, line)) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin != line.npos && line[begin] == '#') continue;
    text += line.substr(0, line.find("//")) + "\n";
  }
  return text;
}

// The virtual functions that a class itself declares, without those of nested classes.
std::set<std::string> VirtualFunctions(const std::string& text, const std::string& name) {
  size_t at = 0;
  do {
    at = text.find("class " + name + " ", at);
    BOOST_REQUIRE(at != text.npos);
    at = text.find_first_of("{;", at);
  } while (text[at] == ';');  // a declaration
  std::set<std::string> functions;
  std::string declaration;  // up to its end, without text in braces
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{') ++depth;
    if (depth == 1 && c != '{') declaration += c;
    const bool ends = (c == ';' && depth == 1) || (c == '}' && depth == 2);
    if (c == '}' && --depth == 0) break;
    if (!ends) continue;
    const bool is_virtual = declaration.find("virtual ") != declaration.npos ||
                            declaration.find(") override") != declaration.npos ||
                            declaration.find(") const override") != declaration.npos;
    // The name is before the first parenthesis.
    const size_t end = declaration.find('(');
    size_t begin = end;
    while (begin != declaration.npos && begin > 0 &&
           (std::isalnum(static_cast<unsigned char>(declaration[begin - 1])) != 0 ||
            declaration[begin - 1] == '_' || declaration[begin - 1] == '~')) {
      --begin;
    }
    if (is_virtual && end != declaration.npos && declaration[begin] != '~') {
      functions.insert(declaration.substr(begin, end - begin));
    }
    declaration.clear();
  }
  return functions;
}

const DatabaseCall* Find(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kDatabaseCalls), std::end(kDatabaseCalls),
                                         [&](const auto& call) { return call.name == name; });
  return found == std::end(kDatabaseCalls) ? nullptr : found;
}

BOOST_AUTO_TEST_CASE(the_table_has_every_virtual_function) {
  const std::string db = ReadHeader("rocksdb/db.h");
  const std::string stackable = ReadHeader("rocksdb/utilities/stackable_db.h");
  const std::set<std::string> of_db = VirtualFunctions(db, "DB");
  const std::set<std::string> forwarded = VirtualFunctions(stackable, "StackableDB");
  BOOST_TEST(of_db.size() > 80u);
  BOOST_TEST(forwarded.size() > 70u);
  BOOST_TEST(of_db.count("Write") == 1u);
  BOOST_TEST(forwarded.count("IngestExternalFiles") == 1u);
  std::set<std::string> all = of_db;
  all.insert(forwarded.begin(), forwarded.end());
  for (const std::string& name : all) {
    const DatabaseCall* const call = Find(name);
    BOOST_TEST((call != nullptr), "engine/live/database_calls.h has no line for DB::" << name);
    if (call != nullptr && call->kind == CallKind::kUnavailable) {
      BOOST_TEST(forwarded.count(name) == 0u, "StackableDB forwards " << name << " by now");
    }
  }
}

BOOST_AUTO_TEST_CASE(the_table_is_in_order) {
  BOOST_TEST(std::is_sorted(std::begin(kDatabaseCalls), std::end(kDatabaseCalls),
                            [](const auto& a, const auto& b) { return a.name < b.name; }));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
