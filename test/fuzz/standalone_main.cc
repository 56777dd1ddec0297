// Runs a fuzz target without libFuzzer: on every file of the given corpus directories, every
// truncation of it, and then seeded random mutations of them.
//   run_file_fuzz [--mutations=N] [--seed=S] DIRECTORY_OR_FILE...
// With CAIRN_FUZZ_SECONDS=N in the environment it runs for N seconds, with a new seed.
// An input that kills the process is first written to crash-input in the working directory.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kMaxTruncations = 4096;  // of one file

std::string* current = nullptr;

void KeepCrash(int signal) {
  std::FILE* out = std::fopen("crash-input", "wb");
  if (out != nullptr) {
    std::fwrite(current->data(), 1, current->size(), out);
    std::fclose(out);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(std::string input) {
  current = &input;
  // In separate memory of exactly its size, so that a sanitizer detects reads past its end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void Mutate(std::mt19937_64& random, const std::vector<std::string>& corpus, std::string* input) {
  static constexpr uint64_t kNumbers[] = {0,          1,          0x7f,       0xff,
                                          UINT16_MAX, UINT32_MAX, UINT64_MAX, uint64_t{1} << 63};
  const size_t at = input->empty() ? 0 : random() % input->size();
  const size_t most = std::min<size_t>(input->size() - at, 1 + random() % 16);
  switch (random() % 7) {
    case 0:  // a bit
      if (!input->empty()) (*input)[at] = static_cast<char>((*input)[at] ^ (1 << random() % 8));
      break;
    case 1:  // a byte
      if (!input->empty()) (*input)[at] = static_cast<char>(random());
      break;
    case 2: {  // a number
      const uint64_t number = kNumbers[random() % std::size(kNumbers)] + random() % 3 - 1;
      const size_t width = std::min(input->size() - at, size_t{1} << random() % 4);
      std::copy_n(reinterpret_cast<const char*>(&number), width, input->begin() + at);
      break;
    }
    case 3:  // cut out
      input->erase(at, most);
      break;
    case 4:  // doubled
      input->insert(at, input->substr(at, most));
      break;
    case 5:  // cut off
      input->resize(at);
      break;
    default: {  // joined with another
      const std::string& other = corpus[random() % corpus.size()];
      if (!other.empty()) input->replace(at, most, other, random() % other.size(), most);
      break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t mutations = 20'000;
  uint64_t seed = 20261121;
  const char* const seconds = std::getenv("CAIRN_FUZZ_SECONDS");
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
  if (seconds != nullptr) seed = std::random_device()();
  std::vector<std::string> corpus;
  const auto add = [&](const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in.good()) {
      std::fprintf(stderr, "cannot read %s\n", path.c_str());
      std::exit(1);
    }
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  };
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--mutations=", 0) == 0) {
      mutations = std::strtoull(argument.c_str() + 12, nullptr, 0);
    } else if (argument.rfind("--seed=", 0) == 0) {
      seed = std::strtoull(argument.c_str() + 7, nullptr, 0);
    } else if (std::filesystem::is_directory(argument)) {
      std::vector<std::filesystem::path> paths;
      for (const auto& entry : std::filesystem::directory_iterator(argument)) {
        paths.push_back(entry.path());
      }
      std::sort(paths.begin(), paths.end());  // the same mutations on every machine
      for (const auto& path : paths) add(path);
    } else {
      add(argument);
    }
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "no corpus\n");
    return 1;
  }
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, KeepCrash);
  Run("");
  for (const std::string& input : corpus) {
    Run(input);
    for (size_t size = 0; size < std::min(input.size(), kMaxTruncations); ++size) {
      Run(input.substr(0, size));
    }
  }
  std::mt19937_64 random(seed);
  uint64_t tried = 0;
  for (; tried < mutations || std::chrono::steady_clock::now() < until; ++tried) {
    std::string input = corpus[random() % corpus.size()];
    for (uint64_t steps = 1 + random() % 4; steps > 0; --steps) Mutate(random, corpus, &input);
    Run(std::move(input));
  }
  std::printf("%zu corpus files, %llu mutations, seed %llu\n", corpus.size(),
              static_cast<unsigned long long>(tried), static_cast<unsigned long long>(seed));
  return 0;
}
