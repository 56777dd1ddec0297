// Random programs against live indexes: see stateful/program.h for what a program may do, and
// stateful/interpreter.h for the rule that each command is held against. A failing program is
// shrunk, and printed so that it can be run again.
//
// CAIRN_TEST_SECONDS=3600 runs for longer; CAIRN_TEST_SEED takes other programs; CAIRN_TEST_PROGRAM
// names a file with one, to be run instead; CAIRN_TEST_VERBOSE prints programs and what the indexes
// report; CAIRN_TEST_SWITCHES=-name leaves something out (stateful/switches.h).
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "absl/time/clock.h"
#include "test/engine/live/stateful/checks.h"
#include "test/engine/live/stateful/found_programs.h"
#include "test/engine/live/stateful/interpreter.h"
#include "test/engine/live/stateful/shrinker.h"
#include "test/engine/live/stateful/steps.h"
#include "test/engine/live/stateful/writes.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(stateful_test)
namespace {

using stateful::Interpreter;
using stateful::Program;

void RegisterTags() {
  RegisterExtractor("stateful_tags", std::make_shared<stateful::TagExtractor>()).IgnoreError();
}

// Failures of one kind begin with the same letters.
std::string KindOf(const std::string& wrong) {
  std::string kind;
  for (size_t i = wrong.find(": "); i < wrong.size() && kind.size() < 16; ++i) {
    if (std::isalpha(wrong[i]) != 0) kind += wrong[i];
  }
  return kind;
}

std::string Shrunken(const Program& program, const std::string& wrong, absl::Duration longest) {
  const absl::Time end = absl::Now() + longest;
  std::string why;
  const Program small = stateful::Shrink(
      program,
      [&](const Program& smaller) {
        for (int i = 0; i < 2; ++i) {  // some fail by chance
          const auto again = Interpreter(smaller).Run();
          if (again.has_value() && KindOf(*again) == KindOf(wrong)) {
            why = *again;
            return true;
          }
        }
        return false;
      },
      [&] { return absl::Now() < end; });
  return stateful::ToText(small) + "# " + why + "\n";
}

BOOST_AUTO_TEST_CASE(programs_are_text_that_can_be_read_again) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Program program = stateful::Generate(seed);
    const auto again = stateful::ProgramOf(stateful::ToText(program));
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST(again->world == program.world);
    BOOST_TEST(again->indexes == program.indexes);
    BOOST_TEST((again->commands == program.commands));
  }
}

BOOST_AUTO_TEST_CASE(found_programs_stay_right) {
  if (kUnderAsan || kUnderTsan) return;  // see below
  RegisterTags();
  for (const char* text : stateful::kFoundPrograms) {
    const auto program = stateful::ProgramOf(text);
    BOOST_REQUIRE(program.has_value());
    const auto wrong = Interpreter(*program).Run();
    BOOST_TEST(!wrong.has_value(), text << wrong.value_or(""));
  }
}

BOOST_AUTO_TEST_CASE(every_answer_is_right_or_refused) {
  // Sanitizers do not see into RocksDB's library: a mutex that it destroys and makes again at one
  // place is an error to them.
  if (kUnderAsan || kUnderTsan) return;
  RegisterTags();
  const char* given = std::getenv("CAIRN_TEST_PROGRAM");
  if (given != nullptr) {
    const auto program = stateful::ProgramOf(ReadFile(given));
    BOOST_REQUIRE(program.has_value());
    const auto wrong = Interpreter(*program).Run();
    if (wrong.has_value()) {
      BOOST_FAIL(*wrong << "\n" << Shrunken(*program, *wrong, absl::Seconds(60)));
    }
    return;
  }
  const char* seconds = std::getenv("CAIRN_TEST_SECONDS");
  const absl::Time begin = absl::Now();
  const absl::Time end = begin + absl::Seconds(seconds != nullptr ? std::atof(seconds) : 20);
  const bool verbose = std::getenv("CAIRN_TEST_VERBOSE") != nullptr;
  std::map<std::string, uint64_t> events;
  uint64_t programs = 0;
  // By default, the same programs on a machine of any speed.
  const uint64_t last = seconds != nullptr ? UINT64_MAX : 150;
  for (; programs < last && absl::Now() < end; ++programs) {
    const uint64_t seed = TestSeed() * 1000000 + programs;
    const Program program = stateful::Generate(seed);
    if (verbose) std::cerr << "# seed " << seed << "\n" << stateful::ToText(program) << std::flush;
    Interpreter interpreter(program);
    const auto wrong = interpreter.Run();
    for (const auto& [event, times] : interpreter.events()) events[event] += times;
    if (wrong.has_value()) {
      const absl::Duration passed = absl::Now() - begin;
      BOOST_FAIL("program " << programs << ", after " << absl::FormatDuration(passed) << ", "
                            << *wrong << "\n"
                            << Shrunken(program, *wrong, absl::Seconds(60))
                            << "# before it was shrunk:\n"
                            << stateful::ToText(program));
    }
  }
  BOOST_TEST_MESSAGE(programs << " programs");
  for (const auto& [event, times] : events) BOOST_TEST_MESSAGE(times << " " << event);
  BOOST_TEST(programs > 0u);
  BOOST_TEST(events["indexes that answered"] > 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
