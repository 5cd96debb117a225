#include "tests/simulation/people.h"

#include <optional>

#include "core/topics.h"
#include "ingest/ingest.h"
#include "routing/routing.h"
#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {
namespace {

void write(MemoryBroker& broker, const std::string& id, std::optional<std::string> value) {
  core::OutRecord record{core::topic::kRouterControl, "ack/" + id, std::move(value)};
  record.partition = 0;
  broker.append(std::move(record));
}

}  // namespace

void People::step() {
  if (rate_ == 0 || !random_.chance(rate_)) return;
  if (!taken_on_.empty() && random_.chance(0.3)) return take_back();
  acknowledge();
}

void People::acknowledge() {
  const auto told = broker_.records("router-outbox");
  if (told.empty()) return;
  const auto message = ingest::decode_notification(view_of(told[random_.index(told.size())]));
  if (!message || message->issues.empty()) return;
  routing::Acknowledgement ack;
  TakenOn taken;
  for (const auto& one : message->issues) {
    if (one.issue.status != core::IssueStatus::firing) continue;
    ack.issues.push_back(one.issue_key);
    taken.episodes[one.issue_key] = one.episode;
  }
  if (ack.issues.empty()) return;
  ack.id = "ack_" + std::to_string(taken_on_.size());
  ack.by = "ada";
  ack.at = clock_.now();
  ack.origin = "cli";
  taken.id = ack.id;
  taken.at = ack.at;
  trace_.say("people", "acknowledge " + message->notification_id + " (" + ack.id + ")");
  write(broker_, ack.id, ack_json(ack));
  taken_on_.push_back(std::move(taken));
}

void People::take_back() {
  TakenOn& one = taken_on_[random_.index(taken_on_.size())];
  trace_.say("people", "take back " + one.id);
  one.taken_back = true;
  write(broker_, one.id, std::nullopt);
}

}  // namespace tocsin::simulation
