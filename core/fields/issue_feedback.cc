#include "core/fields/issue_feedback.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "core/identity.h"
#include "core/text.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::core {
namespace {

constexpr std::size_t kMostOfAFeedback = std::size_t{32} << 10;
constexpr std::size_t kMostOfAName = 1000;  // bytes

OutRecord feedback_record(std::string key, std::optional<std::string> value) {
  OutRecord out{topic::kRouterControl, std::move(key), std::move(value)};
  out.partition = 0;
  return out;
}

Status check_feedback(const IssueEpisode& of, const std::string& by) {
  if (of.issue.find('/') != std::string::npos)
    return invalid_argument("issue is \"" + visible(of.issue, 40) + "\": expected an issue key");
  for (const std::string* name : {&of.issue, &of.event_id, &of.run, &by}) {
    if (name->size() > kMostOfAName)
      return invalid_argument("issue, event_id, run and by have at most " +
                              std::to_string(kMostOfAName) + " bytes each");
  }
  return ok();
}

Status check_words(const char* name, const std::string& text) {
  if (text.size() <= kMostOfANote) return ok();
  return invalid_argument(std::string(name) + " has " + std::to_string(text.size()) +
                          " bytes: expected at most " + std::to_string(kMostOfANote));
}

Status check_verdict_word(const std::string& word) {
  if (std::find(kVerdicts.begin(), kVerdicts.end(), word) != kVerdicts.end()) return ok();
  const std::string near =
      nearest(word.substr(0, 40), std::vector<std::string>(kVerdicts.begin(), kVerdicts.end()));
  return invalid_argument("verdict is \"" + visible(word, 40) +
                          "\": expected useful, noise or known" +
                          (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace

template <typename A>
void episode_fields(A& io, Of<A, IssueEpisode>& of) {
  io.field("issue", of.issue, "the issue key", How::required);
  io.field("event_id", of.event_id, "of the first report of the episode", How::required);
  io.field("run", of.run, "uid of its run", How::omit_if_empty);
}

template <typename A>
void fields(A& io, Of<A, IssueVerdict>& verdict) {
  episode_fields(io, verdict.of);
  io.field("verdict", verdict.verdict, "useful, noise or known", How::required);
  io.field("by", verdict.by, "who says so", How::required);
  io.field("at", verdict.at, "when", How::required);
  io.field("note", verdict.note, "why", How::omit_if_empty);
  io.field("origin", verdict.origin, "cli or api");
}

template <typename A>
void fields(A& io, Of<A, IssueNote>& note) {
  io.field("id", note.id, "its name in the key", How::required);
  episode_fields(io, note.of);
  io.field("by", note.by, "who writes", How::required);
  io.field("at", note.at, "when", How::required);
  io.field("text", note.text, "what they write", How::required);
  io.field("origin", note.origin, "cli or api");
}

std::string verdict_key(const IssueEpisode& of) {
  return std::string(kVerdictPrefix) + of.issue + "/" + of.event_id;
}

OutRecord verdict_record(const IssueVerdict& verdict) {
  return feedback_record(verdict_key(verdict.of), verdict_json(verdict));
}

OutRecord note_record(const IssueNote& note) {
  return feedback_record(std::string(kNotePrefix) + note.id, note_json(note));
}

OutRecord feedback_tombstone(const std::string& key) { return feedback_record(key, std::nullopt); }

std::string note_id(const IssueNote& note) {
  return make_id("note_", {note.of.issue, note.of.event_id, note.by,
                           std::to_string(nanoseconds(note.at)), note.text});
}

std::string verdict_json(const IssueVerdict& verdict) { return write_json(verdict); }
std::string note_json(const IssueNote& note) { return write_json(note); }

Result<IssueVerdict> read_issue_verdict(std::string_view json) {
  IssueVerdict out;
  if (const Status read = read_json(json, kMostOfAFeedback, out); !read) return read.error();
  if (const Status good = check_feedback(out.of, out.by); !good) return good.error();
  if (const Status good = check_verdict_word(out.verdict); !good) return good.error();
  if (const Status good = check_words("note", out.note); !good) return good.error();
  return out;
}

Result<IssueNote> read_issue_note(std::string_view json) {
  IssueNote out;
  if (const Status read = read_json(json, kMostOfAFeedback, out); !read) return read.error();
  if (const Status good = check_feedback(out.of, out.by); !good) return good.error();
  if (out.id.size() > kMostOfAName) return invalid_argument("id is too long");
  if (const Status good = check_words("text", out.text); !good) return good.error();
  return out;
}

}  // namespace tocsin::core
