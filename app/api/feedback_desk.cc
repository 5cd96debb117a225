#include "app/api/feedback_desk.h"

#include <chrono>
#include <optional>

#include "app/view/issue_feedback.h"
#include "core/fields/issue_feedback.h"
#include "core/mutex.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kFeedbackReadBack = 5s;  // until the store has what was written
constexpr auto kLookAgain = 20ms;

core::ValueMap of_fields(const core::IssueEpisode& of, core::Value said) {
  return {{"issue", of.issue}, {"event_id", of.event_id}, {"said", std::move(said)}};
}

}  // namespace

core::Result<FeedbackDesk::Reader> FeedbackDesk::reader() const {
  // Whether it is on, and what troubles it, is known there.
  if (const auto store = desk_.insights.reader(); !store) return store.error();
  return insights::FeedbackReader::open(store_);
}

core::Result<core::IssueEpisode> FeedbackDesk::episode(const ApiCall& call) const {
  const std::string& key = call.request.in_path.find("key")->second;
  const std::string& asked = call.request.in_path.find("episode")->second;
  auto store = desk_.insights.reader();
  if (!store) return store.error();
  auto line = (*store)->issue(key, asked);
  if (const auto status = (*store)->failure(); !status) return status.error();
  if (!line) {
    return core::Error{core::Code::not_found, "there is no issue \"" + core::visible(key, 100) +
                                                  "/" + core::visible(asked, 40) + "\""};
  }
  return core::IssueEpisode{std::move(line->key), std::move(line->event_id), std::move(line->run)};
}

core::Result<core::Value> FeedbackDesk::standing_verdict(const core::IssueEpisode& of) const {
  auto store = reader();
  if (!store) return store.error();
  const auto json = (*store)->record(core::verdict_key(of));
  if (const auto status = (*store)->failure(); !status) return status.error();
  const auto verdict = json ? core::read_issue_verdict(*json)
                            : core::Result<core::IssueVerdict>(core::invalid_argument("none"));
  return verdict ? verdict_value(&*verdict) : core::Value();
}

core::Status FeedbackDesk::write(const ApiCall& call, std::string what, core::Value before,
                                 core::Value after, const core::IssueEpisode& of,
                                 core::OutRecord record) {
  const std::string key = record.key;
  const std::optional<std::string> value = record.value;
  const auto with_issue = [&](core::Value said) {
    return said.is_null() ? core::Value() : core::Value(of_fields(of, std::move(said)));
  };
  std::vector<core::OutRecord> records{audit_of(call, desk_.clock.now(), what, key,
                                                with_issue(std::move(before)),
                                                with_issue(std::move(after)))};
  records.push_back(std::move(record));
  if (const auto sent = desk_.writer.write(records); !sent) return sent;
  desk_.log.info(
      "api_" + what,
      {{"issue", of.issue}, {"by", call.who.name}, {"client", std::string(call.request.client)}});
  core::Mutex quiet;
  core::CondVar never;
  for (auto waited = 0ms; waited < kFeedbackReadBack; waited += kLookAgain) {
    auto store = reader();
    if (!store) return store.error();
    if ((*store)->record(key) == value) return core::ok();
    const core::MutexLock lock(quiet);
    never.wait_for(quiet, kLookAgain, [] { return false; });
  }
  return core::unavailable("it was written, and is not shown yet; ask again in a moment");
}

core::Result<core::IssueVerdict> FeedbackDesk::judge(const ApiCall& call, std::string verdict,
                                                     std::string note) {
  auto of = episode(call);
  if (!of) return of.error();
  core::IssueVerdict out{std::move(*of),    std::move(verdict), call.who.name,
                         desk_.clock.now(), std::move(note),    "api"};
  if (const auto good = core::read_issue_verdict(core::verdict_json(out)); !good)
    return good.error();
  auto before = standing_verdict(out.of);
  if (!before) return before.error();
  const auto written = write(call, "verdict.set", std::move(*before), verdict_value(&out), out.of,
                             core::verdict_record(out));
  if (!written) return written.error();
  return out;
}

core::Status FeedbackDesk::take_back(const ApiCall& call) {
  const auto of = episode(call);
  if (!of) return of.error();
  auto before = standing_verdict(*of);
  if (!before) return before.error();
  if (before->is_null())
    return core::Error{core::Code::not_found, "nobody has given a verdict on this issue"};
  return write(call, "verdict.taken_back", std::move(*before), core::Value(), *of,
               core::feedback_tombstone(core::verdict_key(*of)));
}

core::Result<core::IssueNote> FeedbackDesk::note(const ApiCall& call, std::string text) {
  auto of = episode(call);
  if (!of) return of.error();
  core::IssueNote out{"", std::move(*of), call.who.name, desk_.clock.now(), std::move(text), "api"};
  out.id = core::note_id(out);
  if (const auto good = core::read_issue_note(core::note_json(out)); !good) return good.error();
  auto store = reader();
  if (!store) return store.error();
  if ((*store)->notes(out.of).size() >= core::kMostNotesOfAnIssue) {
    return core::Error{core::Code::failed_precondition,
                       "this issue has " + std::to_string(core::kMostNotesOfAnIssue) +
                           " notes, as many as it may have"};
  }
  const auto written =
      write(call, "note.set", core::Value(), note_value(out), out.of, core::note_record(out));
  if (!written) return written.error();
  return out;
}

core::Result<std::vector<insights::RuleTally>> FeedbackDesk::rules() {
  auto store = reader();
  if (!store) return store.error();
  auto out = (*store)->rules();
  if (const auto status = (*store)->failure(); !status) return status.error();
  return out;
}

}  // namespace tocsin::app
