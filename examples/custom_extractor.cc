// A custom extractor: finds messages by the domains of their recipients, which no built-in source
// can extract from a row.
//   custom_extractor DIRECTORY
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cairn/extractor.h"
#include "cairn/indexed_db.h"

namespace {

// Extracts each recipient's domain from a row "ana@example.org,bo@example.net;text". A pure
// function of the row, and safe to call from several threads: both are required of an extractor.
class RecipientDomains final : public cairn::KeyExtractor {
 public:
  absl::Status Extract(const cairn::RowView& row, cairn::KeySink* sink) const override {
    const size_t end = row.value.find(';');
    if (end == std::string_view::npos) {
      return absl::InvalidArgumentError("a message without recipients");
    }
    std::string_view recipients = row.value.substr(0, end);
    while (!recipients.empty()) {
      const size_t comma = std::min(recipients.find(','), recipients.size());
      const std::string_view recipient = recipients.substr(0, comma);
      const size_t at = recipient.find('@');
      if (at != std::string_view::npos) sink->Add(recipient.substr(at + 1));
      recipients.remove_prefix(std::min(comma + 1, recipients.size()));
    }
    return absl::OkStatus();
  }
};

absl::Status Run(const std::string& directory) {
  // Must precede the opening of an index that names it, in every process.
  absl::Status status =
      cairn::RegisterExtractor("recipient_domains", std::make_shared<RecipientDomains>());
  if (!status.ok()) return status;

  rocksdb::Options options;
  options.create_if_missing = true;
  auto opened = cairn::IndexedDB::Open(options, directory + "/mail.db");
  if (!opened.ok()) return opened.status();
  cairn::IndexedDB& db = **opened;

  // on_error=skip: a row that cannot be parsed has no entry; otherwise the build would fail.
  status = db.CreateIndex("domain = custom('recipient_domains'):text, on_error=skip");
  if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
  status = db.WaitUntilReady("domain");
  if (!status.ok()) return status;

  for (const auto& [key, message] : {std::pair{"1", "ana@example.org,bo@example.net;Hello"},
                                     {"2", "eva@example.net;Hi"},
                                     {"3", "no recipients"}}) {
    const rocksdb::Status written = db.Put({}, key, message);
    if (!written.ok()) return cairn::FromRocksDb(written, "writing a message");
  }

  const auto messages = db.LookupRows("domain", {"example.net"});
  if (!messages.ok()) return messages.status();
  for (const cairn::FoundRow& message : *messages) {
    std::cout << message.primary_key << ": " << message.value << "\n";
  }
  return messages->size() == 2 ? absl::OkStatus() : absl::InternalError("expected two messages");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: custom_extractor DIRECTORY\n", 2;
  std::filesystem::create_directories(argv[1]);
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
