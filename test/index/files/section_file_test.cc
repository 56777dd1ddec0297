#include "index/files/section_file.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "index/files/section_file_writer.h"
#include "index/machine/status_macros.h"
#include "test/forged_file.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(section_file_test)
namespace {

constexpr std::string_view kNames[] = {"first", "second", "third"};
constexpr FileFormat kFormat = {"test file", "CAIRNTST", 3, 5, kNames};

std::string RandomBytes(std::mt19937_64& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// Appends in pieces of up to `piece` bytes.
absl::Status Fill(SectionWriter* section, std::string_view bytes, size_t piece) {
  while (!bytes.empty()) {
    const size_t part = std::min(bytes.size(), piece);
    RETURN_IF_ERROR(section->Append(bytes.data(), part));
    bytes.remove_prefix(part);
  }
  return section->Close();
}

void WriteSections(const std::string& path, const std::vector<std::string>& contents) {
  auto writer = RequireOk(SectionFileWriter::Create(path, kFormat));
  for (size_t i = 0; i < contents.size(); ++i) {
    auto section = RequireOk(writer->AddSection(static_cast<uint32_t>(i + 1), contents[i].size()));
    RequireOk(Fill(section, contents[i], 1000));
  }
  RequireOk(writer->Finish());
  BOOST_TEST(writer->size() == std::filesystem::file_size(path));
}

// A file of three small sections, the second empty.
std::string SmallFile() {
  TemporaryDirectory directory;
  WriteSections(directory / "small", {std::string(100, 'a'), "", std::string(7, 'b')});
  return ReadFile(directory / "small");
}

void CheckHolds(const SectionFile& file, const std::vector<std::string>& contents) {
  BOOST_REQUIRE(file.sections().size() == contents.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    const Section* section = file.Find(static_cast<uint32_t>(i + 1));
    BOOST_REQUIRE(section != nullptr);
    const absl::Span<const char> bytes = file.BytesOf(*section);
    BOOST_CHECK(std::string_view(bytes.data(), bytes.size()) == contents[i]);
    BOOST_TEST(reinterpret_cast<uintptr_t>(bytes.data()) % 64 == 0u);
    for (size_t at = bytes.size(); at % 64 != 0; ++at) BOOST_TEST(bytes.data()[at] == 0);
  }
}

BOOST_AUTO_TEST_CASE(gives_back_sections_of_every_size) {
  std::mt19937_64 random = TestRandom();
  TemporaryDirectory directory;
  constexpr size_t kBlock = SectionWriter::kBlockBytes;
  int number = 0;
  for (size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{4095},
                      size_t{4096}, size_t{4097}, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock}) {
    const std::vector<std::string> contents = {RandomBytes(random, size), RandomBytes(random, 9),
                                               RandomBytes(random, size / 2)};
    const std::string path = directory / std::to_string(number++);
    WriteSections(path, contents);
    for (int threads : {0, 1, 2}) {
      const auto file = RequireOk(SectionFile::Open(path, kFormat, VerifyLevel::kFull, threads));
      CheckHolds(file, contents);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_without_sections_is_a_file) {
  TemporaryDirectory directory;
  WriteSections(directory / "none", {});
  const auto file = RequireOk(SectionFile::Open(directory / "none", kFormat, VerifyLevel::kFull));
  BOOST_TEST(file.sections().empty());
  BOOST_TEST(file.size() == 1024u);
}

BOOST_AUTO_TEST_CASE(sections_are_filled_side_by_side_and_then_one_of_unknown_size) {
  std::mt19937_64 random = TestRandom();
  TemporaryDirectory directory;
  const std::vector<std::string> contents = {
      RandomBytes(random, 9'500'001), RandomBytes(random, 4'999'999), RandomBytes(random, 77),
      RandomBytes(random, 3'000'000), RandomBytes(random, 0)};
  auto writer = RequireOk(SectionFileWriter::Create(directory / "file", kFormat));
  std::vector<absl::Status> results(3);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; ++i) {
    SectionWriter* section = writer->AddSection(i + 1, contents[i].size()).value();
    threads.emplace_back(
        [&, i, section] { results[i] = Fill(section, contents[i], 10'000 + 977 * i); });
  }
  for (uint32_t i = 3; i < 5; ++i) {
    SectionWriter* section = writer->AddSectionOfUnknownSize(i + 1).value();
    BOOST_CHECK(absl::IsInternal(writer->AddSection(99, 1).status()));  // it is still open
    RequireOk(Fill(section, contents[i], 2'000'000));
    BOOST_TEST(section->size() == contents[i].size());
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) BOOST_TEST(result.ok());
  RequireOk(writer->Finish());
  const auto file = RequireOk(SectionFile::Open(directory / "file", kFormat, VerifyLevel::kFull));
  CheckHolds(file, contents);
  BOOST_TEST(file.header_checksum() == writer->header_checksum());
  BOOST_TEST(file.SectionName(1) == "first");
  BOOST_TEST(file.SectionName(5) == "section 5");
}

BOOST_AUTO_TEST_CASE(a_typed_array_must_have_exactly_its_size) {
  const std::string bytes = SmallFile();
  const auto file = RequireOk(OpenBytes(bytes, kFormat, VerifyLevel::kFull));
  BOOST_TEST(file.Array<uint32_t>(1, 25)->size() == 25u);
  BOOST_TEST(file.Array<uint64_t>(2, 0)->empty());
  for (const auto& [id, count] : {std::pair<uint32_t, uint64_t>{1, 24},
                                  {1, 26},
                                  {1, (uint64_t{1} << 62) + 25},
                                  {2, 1},
                                  {3, 1},
                                  {9, 0}}) {
    BOOST_CHECK(absl::IsDataLoss(file.Array<uint32_t>(id, count).status()));
  }
}

BOOST_AUTO_TEST_CASE(every_flipped_bit_is_found) {
  const std::string good = SmallFile();
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const auto file = OpenBytes(bytes, kFormat, VerifyLevel::kFull);
    BOOST_REQUIRE_MESSAGE(absl::IsDataLoss(file.status()), "bit " << bit << ": " << file.status());
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_addition_is_found) {
  const std::string good = SmallFile();
  for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
    for (size_t size = 0; size < good.size(); ++size) {
      BOOST_REQUIRE(absl::IsDataLoss(OpenBytes(good.substr(0, size), kFormat, level).status()));
    }
    for (size_t more : {1, 63, 64, 128, 4096}) {
      const std::string bytes = good + std::string(more, '\0');
      BOOST_REQUIRE(absl::IsDataLoss(OpenBytes(bytes, kFormat, level).status()));
    }
  }
}

BOOST_AUTO_TEST_CASE(metadata_alone_leaves_the_sections_unread) {
  std::string bytes = SmallFile();
  bytes[1024] ^= 1;
  const auto file = RequireOk(OpenBytes(bytes, kFormat, VerifyLevel::kMetadata));
  for (int threads : {0, 1}) {
    const absl::Status s = file.Verify(threads);
    BOOST_CHECK(absl::IsDataLoss(s));
    BOOST_TEST(s.message().find("offset 1024") != std::string::npos);
    BOOST_TEST(s.message().find("'first'") != std::string::npos);
  }
  BOOST_CHECK(file.VerifySection(*file.Find(3)).ok());
}

// The result of opening a file with a forged table and correct checksums.
absl::Status OpenForged(const std::function<void(FileHeader*, Section*)>& forge,
                        VerifyLevel level = VerifyLevel::kMetadata) {
  std::string bytes = SmallFile();
  auto* header = reinterpret_cast<FileHeader*>(bytes.data());
  forge(header, reinterpret_cast<Section*>(header + 1));
  RepairChecksums(&bytes);
  return OpenBytes(bytes, kFormat, level).status();
}

BOOST_AUTO_TEST_CASE(hostile_tables_with_right_checksums_are_refused) {
  BOOST_CHECK(OpenForged([](FileHeader*, Section*) {}, VerifyLevel::kFull).ok());
  const std::vector<std::function<void(FileHeader*, Section*)>> forgeries = {
      [](FileHeader*, Section* s) { s[0].size = UINT64_MAX; },
      [](FileHeader*, Section* s) { s[0].size = UINT64_MAX - 63; },
      [](FileHeader*, Section* s) { s[0].size = UINT64_MAX - s[0].offset + 1; },
      [](FileHeader*, Section* s) { s[2].size = UINT64_MAX - s[2].offset; },
      [](FileHeader*, Section* s) { s[2].size = 65; },
      [](FileHeader*, Section* s) { s[2].size = 0; },
      [](FileHeader*, Section* s) { s[0].size = 99; },   // padding is not zero
      [](FileHeader*, Section* s) { s[0].size = 129; },  // overlaps the next section
      [](FileHeader*, Section* s) { s[0].size = 64; },   // leaves a hole
      [](FileHeader*, Section* s) { s[0].offset = UINT64_MAX; },
      [](FileHeader*, Section* s) { s[0].offset = UINT64_MAX - 63; },
      [](FileHeader*, Section* s) { s[0].offset = 0; },
      [](FileHeader*, Section* s) { s[2].offset = s[0].offset; },
      [](FileHeader*, Section* s) { s[2].offset += 4; },
      [](FileHeader*, Section* s) { s[1].id = s[0].id; },
      [](FileHeader*, Section* s) { std::swap(s[0], s[2]); },
      [](FileHeader* h, Section*) { h->section_count = UINT32_MAX; },
      [](FileHeader* h, Section*) { h->section_count = 31; },
      [](FileHeader* h, Section*) { h->section_count = 4; },
      [](FileHeader* h, Section*) { h->section_count = 2; },
      [](FileHeader* h, Section*) { h->section_count = 0; },
      [](FileHeader* h, Section*) { h->header_bytes = 0; },
      [](FileHeader* h, Section*) { h->header_bytes = 64; },
      [](FileHeader* h, Section*) { h->header_bytes = 1023; },
      [](FileHeader* h, Section*) { h->header_bytes = 1088; },
      [](FileHeader* h, Section*) { h->header_bytes = UINT32_MAX; },
      [](FileHeader* h, Section*) { h->header_bytes = UINT32_MAX - 63; },
      [](FileHeader* h, Section*) { h->file_size += 64; },
      [](FileHeader* h, Section*) { h->file_size = UINT64_MAX; },
  };
  for (size_t i = 0; i < forgeries.size(); ++i) {
    const absl::Status s = OpenForged(forgeries[i]);
    BOOST_TEST(absl::IsDataLoss(s), "forgery " << i << ": " << s);
  }
}

BOOST_AUTO_TEST_CASE(a_size_that_wraps_around_to_the_end_of_the_file_is_refused) {
  TemporaryDirectory directory;
  WriteSections(directory / "file", {"a", ""});
  std::string good = ReadFile(directory / "file");
  for (uint64_t size : {UINT64_MAX, UINT64_MAX - 62, UINT64_MAX - 63, uint64_t{1}}) {
    std::string bytes = good;
    reinterpret_cast<Section*>(bytes.data() + sizeof(FileHeader))[1].size = size;
    RepairChecksums(&bytes);
    const auto file = OpenBytes(bytes, kFormat, VerifyLevel::kMetadata);
    BOOST_TEST(absl::IsDataLoss(file.status()), size);
  }
}

BOOST_AUTO_TEST_CASE(another_major_version_is_refused_and_a_newer_minor_one_is_read) {
  for (uint16_t version : {uint16_t{4}, uint16_t{2}, uint16_t{UINT16_MAX}}) {
    const absl::Status s =
        OpenForged([&](FileHeader* header, Section*) { header->major_version = version; });
    BOOST_CHECK(absl::IsFailedPrecondition(s));
    BOOST_TEST(s.message().find("format version " + std::to_string(version) + ".5") !=
               std::string::npos);
  }
  BOOST_CHECK(OpenForged([](FileHeader* header, Section*) { header->minor_version = 6; }).ok());
}

BOOST_AUTO_TEST_CASE(only_files_of_the_format_open) {
  TemporaryDirectory directory;
  const auto open = [&](const std::string& name) {
    return SectionFile::Open(directory / name, kFormat, VerifyLevel::kMetadata).status();
  };
  BOOST_CHECK(absl::IsNotFound(open("missing")));
  WriteFile(directory / "empty", "");
  BOOST_CHECK(absl::IsDataLoss(open("empty")));
  std::string bytes = SmallFile();
  bytes[7] = 'X';
  WriteFile(directory / "other", bytes);
  BOOST_CHECK(absl::IsDataLoss(open("other")));
  BOOST_TEST(open("other").message().find("CAIRNTSX") != std::string::npos);
  BOOST_CHECK(absl::IsFailedPrecondition(open(".")));
  BOOST_REQUIRE(mkfifo((directory / "pipe").c_str(), 0600) == 0);
  BOOST_CHECK(absl::IsFailedPrecondition(open("pipe")));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_finished_goes_and_one_that_exists_stays) {
  TemporaryDirectory directory;
  {
    auto writer = SectionFileWriter::Create(directory / "file", kFormat);
    RequireOk(writer);
    BOOST_TEST(std::filesystem::exists(directory / "file"));
  }
  BOOST_TEST(!std::filesystem::exists(directory / "file"));
  WriteFile(directory / "file", "mine");
  const auto second = SectionFileWriter::Create(directory / "file", kFormat);
  BOOST_CHECK(absl::IsAlreadyExists(second.status()));
  BOOST_TEST(ReadFile(directory / "file") == "mine");
  const auto nowhere = SectionFileWriter::Create(directory / "no/file", kFormat);
  BOOST_CHECK(absl::IsNotFound(nowhere.status()));
}

BOOST_AUTO_TEST_CASE(what_a_section_was_promised_is_what_it_gets) {
  TemporaryDirectory directory;
  auto writer = SectionFileWriter::Create(directory / "file", kFormat);
  RequireOk(writer);
  SectionWriter* longer = (*writer)->AddSection(1, 10).value();
  BOOST_CHECK(longer->Append("0123456789", 10).ok());
  BOOST_CHECK(absl::IsInternal(longer->Append("x", 1)));
  BOOST_CHECK(absl::IsInternal(longer->Close()));
  SectionWriter* shorter = (*writer)->AddSection(2, 10).value();
  BOOST_CHECK(shorter->Append("012345678", 9).ok());
  BOOST_CHECK(absl::IsInternal((*writer)->Finish()));  // still open
  BOOST_CHECK(absl::IsInternal(shorter->Close()));
  BOOST_CHECK(absl::IsInternal((*writer)->AddSection(1, 10).status()));  // the id is in use
  BOOST_CHECK(absl::IsResourceExhausted((*writer)->AddSection(3, UINT64_MAX).status()));
  for (uint32_t id = 10; id < 10 + SectionFileWriter::kMaxSections - 2; ++id) {
    RequireOk((*writer)->AddSection(id, 0));
  }
  BOOST_CHECK(absl::IsInternal((*writer)->AddSection(99, 0).status()));
}

// Writes a section of `bytes` bytes and returns the first error.
absl::Status WriteMuch(const std::string& path, uint64_t bytes) {
  ASSIGN_OR_RETURN(auto writer, SectionFileWriter::Create(path, kFormat));
  ASSIGN_OR_RETURN(auto section, writer->AddSection(1, bytes));
  const std::string block(100'000, 'x');
  for (uint64_t done = 0; done < bytes; done += block.size()) {
    const absl::Status s = section->Append(block.data(), block.size());
    if (s.ok()) continue;
    // The error stays.
    BOOST_CHECK(section->Append("x", 1) == s);
    BOOST_CHECK(section->Close() == s);
    BOOST_CHECK(writer->Finish() == s);
    return s;
  }
  RETURN_IF_ERROR(section->Close());
  return writer->Finish();
}

BOOST_AUTO_TEST_CASE(a_file_size_limit_is_a_status_and_leaves_no_file) {
  TemporaryDirectory directory;
  rlimit before;
  BOOST_REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  for (rlim_t bytes : {rlim_t{100}, rlim_t{2} << 20}) {
    limit.rlim_cur = bytes;
    BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    const absl::Status s = WriteMuch(directory / "big", 5'000'000);
    BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    BOOST_CHECK(absl::IsResourceExhausted(s));
    BOOST_TEST(s.message().find(directory / "big") != std::string::npos);
    BOOST_TEST(!std::filesystem::exists(directory / "big"));
  }
  std::signal(SIGXFSZ, handler);
  BOOST_CHECK(WriteMuch(directory / "big", 5'000'000).ok());
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_a_status_and_leaves_no_file) {
  TemporaryDirectory directory;
  constexpr int kCannotMount = 42;
  const pid_t child = fork();
  if (child == 0) {
    // In a separate namespace, so that the mount ends with the process.
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") != 0 ||
        mount("none", directory.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
      _exit(kCannotMount);
    }
    const absl::Status s = WriteMuch(directory / "big", 5'000'000);
    const bool named = s.message().find(directory / "big") != std::string::npos;
    _exit(absl::IsResourceExhausted(s) && named && std::filesystem::is_empty(directory.path()) ? 0
                                                                                               : 1);
  }
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotMount) {
    BOOST_TEST_MESSAGE("not allowed to mount a small disk: not tested");
    return;
  }
  BOOST_TEST(status == 0);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
