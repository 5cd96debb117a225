#include "app/stages/registry_reader.h"

#include <chrono>
#include <utility>
#include <variant>

#include "ingest/ingest.h"

namespace tocsin::app {

RegistryReader::RegistryReader(TopicTail::Open open, core::Log& log)
    : tail_(std::move(open), log, "registry_not_read", std::chrono::seconds{1}) {}

void RegistryReader::start_over() {
  tail_.start_over();
  runs_.clear();
}

bool RegistryReader::read(core::Duration now) {
  return tail_.read(now, [this](const core::RecordView& record) {
    if (record.tombstone) return;
    auto decoded = ingest::decode_event(record);
    if (!decoded) return;  // the dead letters have it: every role that reads the topic tells
    auto* job = std::get_if<core::JobEvent>(&decoded->event);
    if (job != nullptr) runs_.insert_or_assign(job->run.uid, std::move(*job));
  });
}

const core::JobEvent* RegistryReader::find(const core::RunUid& run) const {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : &found->second;
}

}  // namespace tocsin::app
