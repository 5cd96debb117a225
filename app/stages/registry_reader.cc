#include "app/stages/registry_reader.h"

#include <chrono>
#include <utility>
#include <variant>

#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kPerTurn = 1000;  // records per turn
constexpr core::Duration kLookEvery = std::chrono::seconds{1};
constexpr core::Duration kTryAgain = std::chrono::seconds{5};

}  // namespace

void RegistryReader::start_over() {
  source_.reset();
  next_.reset();
  runs_.clear();
}

bool RegistryReader::read(core::Duration now) {
  if (!open_ || (next_ && now < *next_)) return false;
  next_ = now + kLookEvery;
  const auto failed = [&](const core::Error& error) {
    log_.warn("registry_not_read", {{"error", error.message}});
    source_.reset();  // what was read stays
    next_ = now + kTryAgain;
    return false;
  };
  if (!source_) {
    auto source = open_();
    if (!source) return failed(source.error());
    source_ = std::move(*source);
  }
  std::size_t count = 0;
  const auto read =
      source_->poll(std::chrono::milliseconds{0}, kPerTurn, [&](const core::RecordView& record) {
        ++count;
        if (record.tombstone) return;
        auto decoded = ingest::decode_event(record);
        if (!decoded) return;  // the dead letters have it: every role that reads the topic tells
        auto* job = std::get_if<core::JobEvent>(&decoded->event);
        if (job != nullptr) runs_.insert_or_assign(job->run.uid, std::move(*job));
      });
  // Compaction leaves gaps behind: what is gone there had a newer record.
  if (!read && read.error().code != core::Code::data_loss) return failed(read.error());
  if (count > 0) next_ = now;
  return true;
}

const core::JobEvent* RegistryReader::find(const core::RunUid& run) const {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : &found->second;
}

}  // namespace tocsin::app
