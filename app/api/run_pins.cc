#include "app/api/run_pins.h"

#include <chrono>
#include <utility>

#include "core/fields/run_pin.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPinsOfAPoll = 1024;

}  // namespace

void RunPins::take(const core::RecordView& record, std::map<std::string, Said>& into) {
  const std::string_view key = record.key.value_or("");
  if (record.topic != core::topic::kRouterControl || !key.starts_with(core::kPinPrefix)) return;
  const std::string run(key.substr(core::kPinPrefix.size()));
  bool pinned = false;
  if (!record.tombstone) {
    const auto pin = core::read_run_pin(record.text());
    if (!pin || pin->run != run) return;
    pinned = true;
  }
  Said& known = into[run];
  if (record.offset > known.offset) known = {record.offset, pinned};
}

core::Status RunPins::read(ingest::Transport& transport, const std::stop_token& stop) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kRouterControl};
  options.start = ingest::Start::beginning;
  auto source = transport.source(options);
  if (!source) return source.error();
  std::map<std::string, Said> found;
  while (!stop.stop_requested()) {
    const auto read = (*source)->poll(100ms, kPinsOfAPoll,
                                      [&](const core::RecordView& record) { take(record, found); });
    if (!read && read.error().code != core::Code::data_loss) return read.error();
    if (!read || *read > 0 || !(*source)->at_end()) continue;
    const core::MutexLock lock(mutex_);
    said_ = std::move(found);
    known_ = true;
    break;
  }
  return core::ok();
}

void RunPins::saw(const core::RecordView& record) {
  const core::MutexLock lock(mutex_);
  take(record, said_);
}

std::optional<std::set<std::string>> RunPins::pinned() const {
  const core::MutexLock lock(mutex_);
  if (!known_) return std::nullopt;
  std::set<std::string> out;
  for (const auto& [run, said] : said_) {
    if (said.pinned) out.insert(run);
  }
  return out;
}

}  // namespace tocsin::app
