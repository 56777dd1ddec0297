#include "engine/live/index_catalog.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/live/followed_index.h"
#include "index/files/index_directory.h"
#include "test/engine/live/forgetful_file_system.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(index_catalog_test)
namespace {

using Kind = IndexMark::Kind;

constexpr char kRoot[] = "/indexes";

void CheckOk(const absl::Status& status) {
  RequireOk(status);
}
IndexCatalog Open(const std::shared_ptr<FileSystem>& files, const std::string& root = kRoot) {
  auto catalog = IndexCatalog::Open(root, files);
  CheckOk(catalog.status());
  return *std::move(catalog);
}
// The catalog's record of an index: "none", "a kind: reason: spec", or nothing.
std::string Has(const IndexCatalog& catalog, const std::string& name) {
  const auto entries = catalog.List();
  CheckOk(entries.status());
  for (const IndexCatalog::Entry& entry : *entries) {
    if (entry.name != name) continue;
    if (entry.mark.kind == Kind::kNone) return "follow";
    return (entry.mark.kind == Kind::kBuild ? "build" : "stale") + (": " + entry.mark.why) + ": " +
           entry.mark.spec;
  }
  return "";
}
absl::Status PublishIndex(const std::string& path, FileSystem* files) {
  const auto directory = IndexDirectory::OpenForWrite(path, files);
  return directory.ok() ? (*directory)->Publish({}) : directory.status();
}

BOOST_AUTO_TEST_CASE(a_mark_says_what_was_written) {
  const auto files = std::make_shared<ForgetfulFileSystem>();
  const IndexCatalog catalog = Open(files);
  CheckOk(catalog.Mark("x", {Kind::kBuild, "it was\ncreated", "x = value:text"}));
  CheckOk(catalog.Mark("y", {Kind::kStale, "", "y = value:text\nand 'more'"}));
  CheckOk(catalog.Mark("z", {Kind::kStale, "no spec, no files", ""}));
  const IndexCatalog again = Open(files);
  BOOST_TEST(Has(again, "x") == "build: it was created: x = value:text");
  BOOST_TEST(Has(again, "y") == "stale: : y = value:text\nand 'more'");
  BOOST_TEST(Has(again, "z") == "");
  CheckOk(again.Mark("x", {}));
  BOOST_TEST(Has(again, "x") == "");
}

BOOST_AUTO_TEST_CASE(a_damaged_mark_makes_an_index_stale_and_removes_what_is_none) {
  TemporaryDirectory directory;
  const std::shared_ptr<FileSystem> files(std::shared_ptr<void>(), FileSystem::Posix());
  const std::string root = directory / "indexes";
  const std::string good = [&] {
    const IndexCatalog catalog = Open(files, root);
    CheckOk(catalog.Mark("x", {Kind::kBuild, "why", "x = value:text"}));
    return ReadFile(root + "/x~");
  }();
  std::mt19937_64 random = TestRandom();
  for (int i = 0; i < 200; ++i) {
    std::string bad = i < 3 ? std::string() : good;
    if (i % 2 == 0)
      bad.resize(random() % (good.size() + 1));
    else if (!bad.empty())
      bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    if (bad == good) continue;
    CheckOk(PublishIndex(root + "/x", files.get()));
    WriteFile(root + "/x~", bad);
    WriteFile(root + "/none~", bad);
    std::filesystem::create_directory(root + "/half");
    WriteFile(root + "/half/rows-000001.tbl", "half");
    WriteFile(root + "/half~", bad);
    std::filesystem::create_directories(root + "/foreign");
    WriteFile(root + "/foreign/letter.txt", "dear");
    WriteFile(root + "/foreign~", bad);
    WriteFile(root + "/.x.tmp", bad);
    const IndexCatalog catalog = Open(files, root);
    BOOST_TEST(Has(catalog, "x").substr(0, 6) == "stale:");
    for (const char* name : {"none~", "half~", "half", ".x.tmp"}) {
      BOOST_TEST(!std::filesystem::exists(root + "/" + name), name);
    }
    BOOST_TEST(std::filesystem::exists(root + "/foreign/letter.txt"));
    BOOST_TEST(Has(catalog, "foreign") == "");
  }
}

// The life of an index, with a power loss after every operation: acknowledged operations have taken
// effect, and the interrupted one has or has not.
BOOST_AUTO_TEST_CASE(a_loss_of_power_leaves_what_was_or_what_is_to_be) {
  struct Step {
    absl::Status (*make)(const IndexCatalog&);
    const char* has;  // afterwards
  };
  const Step steps[] = {
      {[](const IndexCatalog& c) {
         return c.Mark("x", {Kind::kBuild, "new", "x = value:text"});
       },
       "build: new: x = value:text"},
      {[](const IndexCatalog& c) { return PublishIndex(c.DirectoryOf("x"), c.files()); },
       "build: new: x = value:text"},
      {[](const IndexCatalog& c) { return c.Mark("x", {}); }, "follow"},
      {[](const IndexCatalog& c) {
         return c.Mark("x", {Kind::kStale, "ingested", "x = value:text"});
       },
       "stale: ingested: x = value:text"},
      {[](const IndexCatalog& c) {
         return c.Mark("x", {Kind::kBuild, "asked", "x = value:text"});
       },
       "build: asked: x = value:text"},
      {[](const IndexCatalog& c) { return c.RemoveFiles("x"); }, "build: asked: x = value:text"},
      {[](const IndexCatalog& c) { return PublishIndex(c.DirectoryOf("x"), c.files()); },
       "build: asked: x = value:text"},
      {[](const IndexCatalog& c) { return c.Mark("x", {}); }, "follow"},
      {[](const IndexCatalog& c) { return c.Remove("x"); }, ""},
      {[](const IndexCatalog& c) {
         return c.Mark("x", {Kind::kBuild, "again", "x = key:text"});
       },
       "build: again: x = key:text"},
  };
  std::mt19937_64 random = TestRandom();
  bool cut = true;
  for (int64_t k = 1; cut; ++k) {
    for (int chance = 0; chance < 16; ++chance) {
      const auto files = std::make_shared<ForgetfulFileSystem>();
      files->FailFrom(k);
      std::string before = "", after = "";
      cut = false;
      auto catalog = IndexCatalog::Open(kRoot, files);
      cut = !catalog.ok();
      for (const Step& step : steps) {
        if (cut) break;
        before = after;
        after = step.has;
        cut = !step.make(*catalog).ok();
        if (!cut) before = after;
      }
      // First with only the certain contents of the disk, then with all possible ones, then with
      // random ones.
      const uint64_t bits = chance == 0 ? 0 : chance == 1 ? ~uint64_t{0} : random();
      int bit = 0;
      files->LosePower([&] { return (bits >> (bit++ % 64) & 1) != 0; });
      const IndexCatalog again = Open(files);
      const std::string has = Has(again, "x");
      BOOST_TEST((has == before || has == after), "after " << k - 1 << " operations, chance "
                                                           << chance << ": '" << has << "', not '"
                                                           << before << "' or '" << after << "'");
      // The state survives the next power loss, since the index continues from it.
      files->LosePower([] { return false; });
      BOOST_TEST(Has(Open(files), "x") == has);
      if (has.empty()) {
        BOOST_TEST(!files->Exists("/indexes/x"));
        BOOST_TEST(!files->Exists("/indexes/x~"));
      }
      BOOST_TEST(!files->Exists("/indexes/.x.tmp"));
    }
  }
}

// Found by a model of the protocol (test/model/catalog.pml).
BOOST_AUTO_TEST_CASE(a_mark_that_is_in_doubt_is_written_again) {
  for (const Kind wanted : {Kind::kBuild, Kind::kStale}) {
    for (int64_t k = 1; k <= 2; ++k) {  // the mark cannot be removed; its removal is not synced
      const auto files = std::make_shared<ForgetfulFileSystem>();
      const IndexCatalog catalog = Open(files);
      CheckOk(PublishIndex(catalog.DirectoryOf("x"), catalog.files()));
      const auto spec = IndexSpec::Parse("x = value:text");
      CheckOk(spec.status());
      const IndexMark mark{wanted, "why", spec->ToString()};
      CheckOk(catalog.Mark("x", mark));
      EventLog log(nullptr);
      FollowedIndex index(*spec, *spec->Codec(), &catalog, mark, nullptr, &log);
      files->FailFrom(k);
      BOOST_TEST(!index.MarkFollowing(wanted, [] { return false; }).ok());
      files->FailFrom(INT64_MAX);
      CheckOk(index.MarkStale("files were ingested"));
      files->LosePower([] { return true; });
      const std::string has = Has(Open(files), "x").substr(0, 5);
      BOOST_TEST((has == (wanted == Kind::kBuild ? "build" : "stale")), has);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_index_or_in_use_is_not_removed) {
  TemporaryDirectory directory;
  const std::shared_ptr<FileSystem> files(std::shared_ptr<void>(), FileSystem::Posix());
  const std::string root = directory / "indexes";
  const IndexCatalog catalog = Open(files, root);
  std::filesystem::create_directories(root + "/letters");
  WriteFile(root + "/letters/one.txt", "dear");
  CheckOk(catalog.Remove("letters"));
  BOOST_TEST(ReadFile(root + "/letters/one.txt") == "dear");
  {
    const auto held = IndexDirectory::OpenForWrite(root + "/x", files.get());
    CheckOk(held.status());
    CheckOk((*held)->Publish({}));
    BOOST_TEST(absl::IsUnavailable(catalog.Remove("x")));
  }
  BOOST_TEST(std::filesystem::exists(root + "/x/MANIFEST"));
  CheckOk(catalog.Remove("x"));
  BOOST_TEST(!std::filesystem::exists(root + "/x"));
  BOOST_TEST(!std::filesystem::exists(root + "/x~"));
}

BOOST_AUTO_TEST_CASE(the_directory_itself_is_there_after_a_loss_of_power) {
  const auto files = std::make_shared<ForgetfulFileSystem>();
  const IndexCatalog catalog = Open(files);
  files->LosePower([] { return false; });
  BOOST_TEST(files->Exists(kRoot));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
