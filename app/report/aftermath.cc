#include "app/report/aftermath.h"

#include <algorithm>
#include <utility>

#include "app/report/sections.h"
#include "core/labels.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kMostMessages = 200;

std::set<std::string> keys_of(const RunReport& report) {
  std::set<std::string> out;
  for (const IssueTold& told : report.issues) out.insert(core::issue_key(told.first.labels));
  return out;
}

// Of this run alone: a view of all of them would hold every issue of a cluster.
bool is_about(const core::RecordView& record, const core::RunUid& run) {
  if (record.topic == core::topic::kAcks) {
    const auto ack = ingest::decode_ack(record);
    return ack && ack->run == run;
  }
  if (record.topic == core::topic::kCommands) {
    const auto command = ingest::decode_command(record);
    return command && (!command->command || command->command->run == run);
  }
  if (record.topic != core::topic::kRegistry) return false;
  const auto decoded = ingest::decode_event(record);
  const auto* job = decoded ? std::get_if<core::JobEvent>(&decoded->event) : nullptr;
  return job != nullptr && job->run.uid == run;
}

std::string spaced(std::string words) {
  for (char& one : words) one = one == '_' ? ' ' : one;
  return words;
}

// "stopped at step 190, asked by rule exploding_tensor; 2 of 2 ranks stopped"
std::string stop_words(const core::StopTold& stop) {
  std::string out = spaced(stop.state);
  if (stop.step) out += " at step " + std::to_string(*stop.step);
  out += stop.rule.empty() ? ", asked by " + stop.requested_by : ", asked by rule " + stop.rule;
  if (stop.answers.asked > 0) {
    out += "; " + std::to_string(stop.answers.stopped) + " of " +
           std::to_string(stop.answers.asked) + " ranks stopped";
  }
  if (stop.exit_code) out += "; exit code " + std::to_string(*stop.exit_code);
  if (stop.state != "stopped" && !stop.reason.empty()) out += ": " + stop.reason;
  return out;
}

// "loss is NaN, and 2 more issues": of those that the message names and the run has.
std::string about_words(const RunReport& report, const core::Delivery& message) {
  std::string out;
  std::size_t more = 0;
  for (const IssueTold& told : report.issues) {
    const std::string key = core::issue_key(told.first.labels);
    const bool named = std::any_of(message.issues.begin(), message.issues.end(),
                                   [&](const auto& one) { return one.issue_key == key; });
    if (named && out.empty()) {
      out = told.first.summary;
    } else if (named) {
      ++more;
    }
  }
  if (more == 0) return out;
  return out + " And " + std::to_string(more) + (more == 1 ? " more issue." : " more issues.");
}

// "the store was 42 s behind when this report was made"
std::string behind_words(core::Duration behind) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(behind);
  if (seconds.count() == 0) return "the store was behind when this report was made";
  return "the store was " + core::to_text(seconds) + " behind when this report was made";
}

// What no record tells of has not happened, if all of them were read.
std::string stop_or_none(const RunReport& report) {
  if (report.stop) return stop_words(*report.stop);
  return report.store_behind ? "not known yet: " + behind_words(*report.store_behind)
                             : "nobody asked for one";
}

std::string checkpoint_words(const core::StopTold& stop) {
  if (!stop.checkpoint) {
    return stop.checkpoint_failure.empty() ? "" : "not saved: " + stop.checkpoint_failure;
  }
  return (stop.checkpoint->host.empty() ? "" : stop.checkpoint->host + ":") + stop.checkpoint->path;
}

}  // namespace

Aftermath::Aftermath(const RunReport& about)
    : run_(about.run.uid),
      attempt_(about.run.attempt),
      issues_(keys_of(about)),
      messages_(HistoryFilter{{}, {}, {}, [this](const core::IssueRef& ref) {
                                return issues_.count(ref.issue_key) > 0;
                              }}) {}

void Aftermath::apply(const core::RecordView& record) {
  if (record.topic == core::topic::kRouterOutbox ||
      record.topic == core::topic::kRouterDeliveries) {
    messages_.apply(record);
  } else if (is_about(record, run_)) {
    view_.apply(record);
  }
}

void Aftermath::tell(RunReport& into) {
  view_.close_ended();
  into.messages.emplace();
  const auto stop = view_.stops().find(run_);
  // A stop of the attempt before says nothing of this one.
  if (stop != view_.stops().end() && stop->second.command.attempt == attempt_) {
    into.stop = stop->second.told;
    if (!into.checkpoint) into.checkpoint = stop->second.checkpoint;
  }
  for (const ToldMessage* message : messages_.messages()) {
    MessageSent sent;
    sent.at = message->decided;
    sent.receiver = message->head.receiver;
    sent.way = message->head.type;
    sent.about = message->headline.empty() ? about_words(into, message->head) : message->headline;
    sent.state = std::string(core::to_string(message->state()));
    if (!message->steps.empty()) {
      const DeliveryStep& last = message->steps.back();
      sent.answer = last.delivery.code.empty() ? last.delivery.detail : last.delivery.code;
      if (core::nanoseconds(sent.at) == 0) sent.at = last.at;
    }
    into.messages->push_back(std::move(sent));
  }
}

Section aftermath_section(const RunReport& report) {
  Section out{"What was done, and who was told", {}};
  if (!report.messages || (report.issues.empty() && !report.stop)) return out;
  Table done;
  const auto row = [&](const char* name, const std::string& value) {
    if (!value.empty()) done.rows.push_back({name, value});
  };
  row("stop", stop_or_none(report));
  if (report.stop) row("checkpoint", checkpoint_words(*report.stop));
  if (!report.issues.empty()) {
    row("judge its first records again",
        "tocsin issues reproduce " + report.issues.front().first.event_id);
  }
  out.add(std::move(done));
  const std::vector<MessageSent>& messages = *report.messages;
  if (messages.empty()) {
    if (report.issues.empty()) return out;
    // A group may still wait for its time, so "yet" is all that can be said.
    out.add(Paragraph{report.store_behind
                          ? "Who was told is not known yet: " + behind_words(*report.store_behind) +
                                ". Make the report again to see it."
                          : "Nobody had been told yet when this report was made."});
    return out;
  }
  if (report.store_behind) {
    out.add(Paragraph{"There may be more messages: " + behind_words(*report.store_behind) + "."});
  }
  Table told{{"when", "receiver", "by", "about", "state", "answer"}, {}};
  for (const MessageSent& one : messages) {
    if (told.rows.size() == kMostMessages) break;
    told.rows.push_back(
        {moment_text(one.at), one.receiver, one.way, one.about, spaced(one.state), one.answer});
  }
  out.add(std::move(told));
  if (messages.size() > kMostMessages) {
    out.add(Paragraph{std::to_string(messages.size() - kMostMessages) +
                      " more messages are not listed."});
  }
  return out;
}

}  // namespace tocsin::app::report
