#include "app/view/dead_letters.h"

#include <utility>

#include "actions/actions.h"
#include "app/view/dead_letter_records.h"
#include "app/view/view_words.h"
#include "core/fields/outbox.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostOfALetterLine = 300;

std::string header_text(const core::RecordView& record, std::string_view name) {
  return std::string(record.header(name).value_or(""));
}

std::string end_words(const core::RecordView& record) {
  std::string out = header_text(record, letter::kClass);
  for (const auto name : {letter::kCode, letter::kDetail}) {
    const std::string more = header_text(record, name);
    if (!more.empty()) out += (out.empty() ? "" : ", ") + more;
  }
  const std::string attempts = header_text(record, letter::kAttempts);
  if (!attempts.empty() && attempts != "0") out += "; after attempt " + attempts;
  return out;
}

std::string event_text(const LetterEvent& event) {
  std::string out = "  " + core::to_rfc3339(event.at) + "  " + event.what;
  if (!event.by.empty()) out += " by " + core::visible(event.by, 100);
  if (!event.replay.empty()) out += " (" + core::visible(event.replay, 60) + ")";
  for (const std::string* more : {&event.detail, &event.note}) {
    if (!more->empty()) out += ": " + core::visible(*more, kMostOfALetterLine);
  }
  return out + "\n";
}

}  // namespace

std::string DeadLetter::stand() const {
  if (events.empty()) return "dead";
  const std::string& last = events.back().what;
  if (last == "discard") return "discarded";
  if (last != "replay") return last;
  return replayed_to.empty() ? "replaying" : replayed_to;
}

core::WallTime DeadLetter::died() const {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->what == "dead" || event->what == "expired") return event->at;
  }
  return {};
}

void DeadLetters::apply(const core::RecordView& record) {
  if (record.tombstone) return;
  if (record.topic == core::topic::kRouterDeliveries) {
    const auto delivery = ingest::decode_delivery(record);
    if (!delivery || delivery->state == core::DeliveryState::pending) return;
    const std::string replay(actions::replay_of(*delivery));
    if (!replay.empty() && delivery->notification_id == actions::notification_of(*delivery)) {
      replays_[replay] = to_string(delivery->state);
    }
    return;
  }
  if (record.topic != core::topic::kRouterDeadletter) return;
  const std::string id = header_text(record, letter::kNotification);
  LetterEvent event;
  event.at = core::wall_time(record.timestamp);
  event.replay = header_text(record, letter::kReplay);
  event.what = header_text(record, letter::kAct);
  if (event.what.empty()) {
    auto notification = ingest::open_notification(record);
    if (!notification) return;
    event.what = header_text(record, letter::kState);
    event.detail = end_words(record);
    letters_[notification->notification_id].notification = std::move(*notification);
  } else {
    event.by = header_text(record, letter::kBy);
    event.note = header_text(record, letter::kNote);
  }
  // Of one whose message is kept no longer, nothing is shown.
  const auto letter = letters_.find(id);
  if (letter != letters_.end()) letter->second.events.push_back(std::move(event));
}

void DeadLetters::close() {
  for (auto& [id, letter] : letters_) {
    if (letter.events.empty()) continue;
    const auto ended = replays_.find(letter.events.back().replay);
    letter.replayed_to = ended == replays_.end() ? "" : ended->second;
  }
}

std::string letter_text(const DeadLetter& letter) {
  core::Notification message = letter.notification;
  (void)core::unpack(message);
  std::string out =
      core::visible(message.notification_id, 100) + "  " + letter.stand() + "  " +
      core::visible(message.integration, 100) + "  " + std::string(to_string(message.kind)) + ", " +
      core::visible(message.reason, 40) + "\n  decided " + core::to_rfc3339(message.decided_at) +
      "  group " + core::visible(message.group_key, kMostOfALetterLine) + "\n";
  for (const core::NotifiedIssue& one : message.issues) {
    out += "  " + issue_headline(one.issue) + "  " + core::visible(one.issue.event_id, 60) + "\n";
  }
  for (const LetterEvent& event : letter.events) out += event_text(event);
  return out;
}

core::Value letter_value(const DeadLetter& letter, bool whole) {
  core::Notification message = letter.notification;
  (void)core::unpack(message);
  core::ValueList events;
  for (const LetterEvent& event : letter.events) {
    core::ValueMap one{{"at", core::to_rfc3339(event.at)}, {"what", event.what}};
    const std::pair<const char*, const std::string*> more[] = {{"by", &event.by},
                                                               {"note", &event.note},
                                                               {"detail", &event.detail},
                                                               {"replay", &event.replay}};
    for (const auto& [name, text] : more) {
      if (!text->empty()) one.emplace_back(name, *text);
    }
    events.push_back(std::move(one));
  }
  core::ValueList issues;
  for (const core::NotifiedIssue& one : message.issues) {
    issues.push_back(core::ValueMap{{"event_id", one.issue.event_id},
                                    {"issue_key", one.issue_key},
                                    {"episode", one.episode},
                                    {"job", one.issue.run.job},
                                    {"severity", std::string(to_string(one.issue.severity))},
                                    {"summary", one.issue.summary}});
  }
  core::ValueMap out{{"id", message.notification_id},
                     {"what", "notification"},
                     {"stand", letter.stand()},
                     {"integration", message.integration},
                     {"type", message.type},
                     {"receiver", message.receiver},
                     {"group_key", message.group_key},
                     {"kind", std::string(to_string(message.kind))},
                     {"reason", message.reason},
                     {"decided_at", core::to_rfc3339(message.decided_at)},
                     {"died_at", core::to_rfc3339(letter.died())},
                     {"issues", std::move(issues)},
                     {"events", std::move(events)}};
  if (whole) out.emplace_back("rendered", message.rendered);
  return out;
}

}  // namespace tocsin::app
