#include "actions/message/next_commands.h"

#include <algorithm>

#include "actions/contract/shell_word.h"
#include "actions/message/episode_words.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxLabel = 200;

/// As a matcher has it; empty where the value could not be pasted as it is.
std::string matcher(const core::Labels& labels, std::string_view name) {
  const std::string& value = labels.get(name);
  if (value.empty() || value.size() > kMaxLabel || core::visible(value) != value) return {};
  std::string quoted;
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return shell_word(std::string(name) + "=\"" + quoted + "\"");
}

std::string mute(const core::Issue& issue, const std::string& run) {
  if (!run.empty()) return "--run " + run;
  std::string out;
  for (const std::string_view name : {"rule", "job", "node", "instance"}) {
    const std::string one = matcher(issue.labels, name);
    if (!one.empty()) out += (out.empty() ? "" : " ") + one;
  }
  return out;
}

}  // namespace

std::vector<NextCommand> next_commands(const core::Issue& issue, bool ended,
                                       const std::vector<std::string>& place) {
  std::string at;
  for (const std::string& word : place) at += " " + shell_word(word);
  const std::string run = run_text(issue.run);
  std::vector<NextCommand> out;
  const std::string& id = issue.event_id;  // of another producer it may be anything
  // The router's own issues are in no topic: no command finds them there, and no silence is for them.
  const bool listed = !issue.source.ends_with("/router");
  const bool named = listed && !id.empty() && id.size() <= kMaxLabel && core::visible(id) == id;
  if (named) {
    out.push_back({"Show this issue", "tocsin issues show " + shell_word(id) + at});
  }
  if (run.empty()) {
    out.push_back({"List open issues", "tocsin issues list" + at});
  } else {
    out.push_back({"Show the run", "tocsin status " + run + at});
  }
  const std::string muted = mute(issue, run);
  if (named && !ended && issue.status == core::IssueStatus::firing) {
    out.push_back({"Take it on: no repeats and no escalation",
                   "tocsin ack " + shell_word(id) + " --note 'looking at it'" + at});
  }
  if (ended && !run.empty()) {
    out.push_back({"Write a report about the run", "tocsin report " + run + at});
  } else if (listed && !muted.empty()) {
    out.push_back({"Mute it for two hours",
                   "tocsin silence add " + muted + " --for 2h --comment known" + at});
  }
  return out;
}

}  // namespace tocsin::actions
