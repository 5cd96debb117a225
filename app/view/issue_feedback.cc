#include "app/view/issue_feedback.h"

#include <algorithm>
#include <utility>

#include "app/view/view_words.h"
#include "core/fields/issue_feedback.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

std::string said_by(const std::string& by, core::WallTime at, core::WallTime now) {
  const std::string when = ago(at, now);
  return core::visible(by) + (when.empty() ? "" : ", " + when);
}

}  // namespace

void FeedbackView::apply(const core::RecordView& record) {
  if (record.topic != core::topic::kRouterControl) return;
  const std::string key(record.key.value_or(""));
  const bool of_verdict = key.starts_with(core::kVerdictPrefix);
  if (!of_verdict && !key.starts_with(core::kNotePrefix)) return;
  if (record.tombstone) {
    verdicts_.erase(key);
    notes_.erase(key);
  } else if (of_verdict) {
    auto verdict = core::read_issue_verdict(record.text());
    if (verdict && core::verdict_key(verdict->of) == key) verdicts_[key] = std::move(*verdict);
  } else if (auto note = core::read_issue_note(record.text())) {
    if (std::string(core::kNotePrefix) + note->id == key) notes_[key] = std::move(*note);
  }
}

const core::IssueVerdict* FeedbackView::verdict(const std::string& issue,
                                                const std::string& event_id) const {
  const auto found = verdicts_.find(core::verdict_key({issue, event_id, ""}));
  return found == verdicts_.end() ? nullptr : &found->second;
}

std::vector<const core::IssueNote*> FeedbackView::notes(const std::string& issue,
                                                        const std::string& event_id) const {
  std::vector<const core::IssueNote*> out;
  for (const auto& entry : notes_) {
    if (entry.second.of.issue == issue && entry.second.of.event_id == event_id)
      out.push_back(&entry.second);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->at < b->at; });
  return out;
}

std::vector<std::string> FeedbackView::older_than(core::WallTime then) const {
  std::vector<std::string> out;
  for (const auto& entry : verdicts_) {
    if (entry.second.at < then) out.push_back(entry.first);
  }
  for (const auto& entry : notes_) {
    if (entry.second.at < then) out.push_back(entry.first);
  }
  return out;
}

core::Value verdict_value(const core::IssueVerdict* verdict) {
  if (verdict == nullptr) return {};
  return core::ValueMap{
      {"verdict", verdict->verdict},
      {"by", verdict->by},
      {"at", core::to_rfc3339(verdict->at)},
      {"note", verdict->note.empty() ? core::Value() : core::Value(verdict->note)},
      {"origin", verdict->origin}};
}

core::Value note_value(const core::IssueNote& note) {
  return core::ValueMap{{"id", note.id},
                        {"by", note.by},
                        {"at", core::to_rfc3339(note.at)},
                        {"text", note.text},
                        {"origin", note.origin}};
}

core::ValueList note_values(const std::vector<const core::IssueNote*>& notes) {
  core::ValueList out;
  for (const core::IssueNote* note : notes) out.push_back(note_value(*note));
  return out;
}

std::string verdict_text(const core::IssueVerdict& verdict, core::WallTime now) {
  return verdict.verdict + ", says " + said_by(verdict.by, verdict.at, now) +
         (verdict.note.empty() ? "" : ": " + core::visible(verdict.note));
}

std::string note_text(const core::IssueNote& note, core::WallTime now) {
  return said_by(note.by, note.at, now) + ": " + core::visible(note.text);
}

}  // namespace tocsin::app
