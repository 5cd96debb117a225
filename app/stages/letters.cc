#include "app/stages/letters.h"

#include <cstdint>
#include <optional>

#include "app/view/dead_letter_records.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostLetters = 200'000;    // the oldest beyond them are not counted
constexpr std::size_t kMostLetterKinds = 1'000;  // series; what is beyond them shares "other"

std::string header_or(const core::RecordView& record, std::string_view name,
                      std::string_view otherwise) {
  return std::string(record.header(name).value_or(otherwise));
}

}  // namespace

LettersStage::LettersStage(core::Duration kept, core::Telemetry& telemetry)
    : kept_(kept), telemetry_(telemetry) {
  wiring_.name = "letters";
  wiring_.part = "router";
  wiring_.topics = {core::topic::kRouterDeadletter};
  wiring_.leader = true;
  wiring_.writes = false;
  wiring_.fetch_wait = std::chrono::milliseconds(500);  // what comes ends it at once
  wiring_.patience = std::chrono::milliseconds(250);    // a gauge, which is asked for now and then
}

core::Status LettersStage::open(const Instant& /*now*/) {
  forget();
  return core::ok();
}

// Another leader counts from now on.
void LettersStage::finish(const Instant& /*now*/) { forget(); }

void LettersStage::forget() {
  letters_.clear();
  by_time_.clear();
  for (auto& [kind, number] : open_) count(kind, -number);
}

void LettersStage::count(const Kind& kind, std::int64_t change) {
  std::int64_t& number = open_[kind];
  number += change;
  telemetry_
      .gauge("tocsin_router_dead_letters",
             "notifications given up that nobody has replayed or discarded, by the class of the "
             "last try",
             {{"integration", kind.first}, {"reason", kind.second}})
      .set(static_cast<double>(number));
}

void LettersStage::close(Letter& letter) {
  if (!letter.open) return;
  letter.open = false;
  count(letter.kind, -1);
}

// What is not written as we write it is `tocsin dlq list`'s to tell.
std::optional<Refusal> LettersStage::handle(const core::RecordView& record,
                                            const StageContext& /*context*/) {
  const std::string id = header_or(record, letter::kNotification, "");
  if (record.tombstone || id.empty()) return std::nullopt;
  if (record.header(letter::kAct)) {
    // Replayed: if it dies again, that is a record of its own.
    const auto found = letters_.find(id);
    if (found != letters_.end()) close(found->second);
    return std::nullopt;
  }
  Letter& letter = letters_[id];
  close(letter);
  letter.kind = {std::string(record.key.value_or("")), header_or(record, letter::kClass, "")};
  if (open_.size() >= kMostLetterKinds && !open_.contains(letter.kind)) {
    letter.kind = {"other", "other"};
  }
  letter.told = core::wall_time(record.timestamp);
  letter.open = true;
  count(letter.kind, 1);
  by_time_.emplace_back(letter.told, id);
  if (by_time_.size() > kMostLetters) drop_old(by_time_.front().first + kept_);
  return std::nullopt;
}

// What the topic keeps no longer nobody can replay.
void LettersStage::drop_old(core::WallTime now) {
  while (!by_time_.empty() && by_time_.front().first + kept_ <= now) {
    const auto found = letters_.find(by_time_.front().second);
    if (found != letters_.end() && found->second.told <= by_time_.front().first) {
      close(found->second);
      letters_.erase(found);
    }
    by_time_.pop_front();
  }
}

std::optional<core::Duration> LettersStage::tick(const StageTick& tick) {
  drop_old(tick.now.wall);
  return std::nullopt;
}

StageOutput LettersStage::take(const Instant& /*now*/) { return {}; }

}  // namespace tocsin::app
