#include "app/api/event_intake.h"

#include <utility>

#include "app/api/api_desk.h"
#include "app/serve/problem.h"
#include "core/identity.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostSentences = 10;
constexpr std::size_t kMostPosted = 20;  // keys in the record of who posted them

// Of one run in one partition; of no run by what identifies the issue.
std::string key_of_issue(const core::Issue& issue) {
  const std::string run = core::to_text(issue.run.uid);
  return issue.run.uid == core::RunUid{} ? core::issue_key(issue.labels) : run;
}

}  // namespace

void EventIntake::take(const core::Result<core::Value>& event) {
  ++taken_;
  const core::Status good = event ? check(*event) : core::Status(event.error());
  if (good || refused_.size() >= kMostSentences) return;
  refused_.push_back("event " + std::to_string(taken_) + ": " + good.error().message);
}

core::Status EventIntake::check(core::Value event) {
  const auto* attributes = core::as<core::ValueMap>(event);
  if (attributes == nullptr)
    return core::invalid_argument("expected an event: attributes and data");
  if (core::find(event, "time") == nullptr) {
    core::ValueMap timed = *attributes;
    timed.emplace_back("time", core::to_rfc3339(at_));
    event = std::move(timed);
  }
  std::string text = core::to_json(event);
  const auto decoded = ingest::decode_structured_event(text);
  if (!decoded) return decoded.error();
  const auto* issue = std::get_if<core::Issue>(&decoded->event);
  if (issue == nullptr) return core::invalid_argument("only issues are taken here");
  if (issue->run.attempt > 0 && call_.who.role < ApiRole::stopper) {
    return core::invalid_argument(
        "it names the attempt of a run, which it may stop: this needs a token with the role "
        "stopper");
  }
  if (posted_.size() < kMostPosted) {
    posted_.push_back(core::ValueMap{{"key", core::issue_key(issue->labels)},
                                     {"rule", issue->rule},
                                     {"status", std::string(core::to_string(issue->status))}});
  }
  records_.push_back({core::topic::kIssues,
                      key_of_issue(*issue),
                      std::move(text),
                      {{"content-type", "application/cloudevents+json"}}});
  return core::ok();
}

core::OutRecord EventIntake::audit() const {
  return audit_of(
      call_, at_, "issues.posted", std::to_string(records_.size()) + " events", {},
      core::ValueMap{{"events", static_cast<std::int64_t>(records_.size())}, {"issues", posted_}});
}

HttpAnswer EventIntake::write(ApiWriter& writer, int answered) {
  const std::size_t good = records_.size();
  if (good > 0) {
    records_.insert(records_.begin(), audit());
    if (const auto written = writer.write(records_); !written) return problem(written.error());
  }
  if (good == taken_) return {answered, ""};
  std::string why = std::to_string(taken_ - good) + " of " + std::to_string(taken_) + " refused";
  for (const std::string& sentence : refused_) why += "; " + sentence;
  return problem(400, "refused-events", why);
}

}  // namespace tocsin::app
