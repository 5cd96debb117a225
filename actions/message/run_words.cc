#include "actions/message/run_words.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "actions/message/episode_words.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using core::RunTold;
using core::StopTold;

constexpr std::size_t kMaxRunRow = 500;
constexpr std::size_t kMaxRunList = 1200;  // its entries are cut and counted by themselves
constexpr std::size_t kMaxRunLabels = 12;
constexpr std::size_t kMaxRunHosts = 8;

void add_run_row(Rows& rows, const char* name, const std::string& value,
                 std::size_t limit = kMaxRunRow) {
  if (!value.empty()) rows.emplace_back(name, core::visible(value, limit));
}

bool was_stopped(const RunTold& told) {
  return told.outcome.starts_with("stopped") || (told.stop && told.stop->state == "stopped");
}

/// How a stop stands that has not ended the run.
std::string stop_progress(const StopTold& stop) {
  if (stop.state == "refused") return "stop refused";
  if (stop.state == "failed" || stop.state == "rejected_stale") return "stop failed";
  if (stop.state.starts_with("platform")) return "its platform is asked to stop it";
  if (stop.state == "expired") return "stop not answered";
  if (stop.state == "checkpointing") return "stopping";
  if (stop.state == "cooperative") return "stopping";
  return "stop requested";
}

std::string checkpoint_words(const StopTold& stop) {
  if (stop.checkpoint) return ", checkpoint saved";
  const bool wanted = stop.mode == "checkpoint_then_stop";
  if (!stop.checkpoint_failure.empty()) return ", checkpoint failed";
  if (stop.state == "checkpointing") return ", saving a checkpoint";
  return wanted && stop.state == "stopped" ? ", no checkpoint" : "";
}

std::string end_words(const RunTold& told) {
  std::string out = "job ended";
  for (const std::string_view known : {"completed", "failed", "lost", "interrupted"}) {
    if (told.outcome == known) out = "job " + std::string(known);
  }
  const bool tells = told.exit_code && (*told.exit_code != 0 || told.outcome == "failed");
  return out + (tells ? ", exit code " + std::to_string(*told.exit_code) : "");
}

std::string who_asked(const StopTold& stop) {
  std::string out = stop.command_id;
  if (stop.requested_at != core::WallTime{}) out += ", requested at " + when(stop.requested_at);
  if (!stop.rule.empty()) {
    out += " by rule " + stop.rule;
  } else if (!stop.requested_by.empty()) {
    out += " by " + stop.requested_by;
  }
  if (!stop.mode.empty()) out += " (" + stop.mode + ")";
  return out;
}

std::string rank_answers(const StopTold& stop) {
  const core::StopAnswers& said = stop.answers;
  std::string out = stop.state;
  if (said.heard == 0 && stop.state == "requested") return "no answer yet";
  const std::string of = said.asked > 0 ? " of " + std::to_string(said.asked) : "";
  const std::string ranks = said.asked == 1 ? " rank" : " ranks";
  if (said.stopped > 0) {
    out = std::to_string(said.stopped) + of + ranks + " stopped";
  } else if (said.accepted > 0) {
    out = std::to_string(said.accepted) + of + ranks + " accepted";
  }
  if (said.refused > 0) out += ", " + std::to_string(said.refused) + of + ranks + " refused";
  if (stop.step) out += " at step " + std::to_string(*stop.step);
  if (stop.exit_code) out += ", exit code " + std::to_string(*stop.exit_code);
  return out;
}

std::string checkpoint_row(const StopTold& stop) {
  if (!stop.checkpoint) {
    if (!stop.checkpoint_failure.empty()) return "not saved: " + stop.checkpoint_failure;
    return stop.mode == "checkpoint_then_stop" && stop.state == "stopped" ? "not saved" : "";
  }
  const core::Checkpoint& saved = *stop.checkpoint;
  std::string more;
  if (saved.step) more = "step " + std::to_string(*saved.step);
  if (saved.bytes > 0) more += (more.empty() ? "" : ", ") + size_text(saved.bytes);
  return checkpoint_place(saved) + (more.empty() ? "" : " (" + more + ")");
}

std::string end_row(const RunTold& told) {
  if (told.outcome.empty()) return {};
  std::string out = told.outcome;
  std::replace(out.begin(), out.end(), '_', ' ');
  if (told.exit_code) out += ", exit code " + std::to_string(*told.exit_code);
  if (told.step) out += ", last step " + std::to_string(*told.step);
  if (told.ended_at) out += ", " + when(*told.ended_at);
  if (told.started_at && told.ended_at && *told.ended_at > *told.started_at) {
    const std::string length = lasted(*told.ended_at - *told.started_at);
    if (!length.empty()) out += " after " + length;
  }
  return out;
}

/// The owner first; what the rows above and the rule say already is left out.
std::string label_list(const core::Labels& labels) {
  static constexpr std::string_view kKnown[] = {
      "rule",   "severity", "job",    "run_uid", "attempt", "tensor", "metric",
      "worker", "node",     "device", "cluster", "mode",    "kind",   "rank"};
  static constexpr std::string_view kOwners[] = {"owner", "team"};
  std::vector<std::string> parts;
  for (const std::string_view owner : kOwners) {
    if (labels.has(owner)) parts.push_back(std::string(owner) + "=" + labels.get(owner));
  }
  for (const auto& [name, value] : labels.entries()) {
    const auto is = [&, &label = name](std::string_view one) { return one == label; };
    if (std::any_of(std::begin(kKnown), std::end(kKnown), is) ||
        std::any_of(std::begin(kOwners), std::end(kOwners), is)) {
      continue;
    }
    parts.push_back(name + "=" + value);
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(parts.size(), kMaxRunLabels); ++i) {
    out += (out.empty() ? "" : ", ") + core::visible(parts[i], 80);
  }
  if (parts.size() > kMaxRunLabels)
    out += ", … " + std::to_string(parts.size() - kMaxRunLabels) + " more";
  return out;
}

std::string host_list(const std::vector<std::string>& hosts) {
  std::string out;
  for (std::size_t i = 0; i < std::min(hosts.size(), kMaxRunHosts); ++i) {
    out += (out.empty() ? "" : ", ") + core::visible(hosts[i], 80);
  }
  if (hosts.size() > kMaxRunHosts)
    out += ", … " + std::to_string(hosts.size() - kMaxRunHosts) + " more";
  return out;
}

std::string run_row(const core::RunRef& run) {
  const std::string uid = run_text(run);
  if (uid.empty()) return {};
  return uid + (run.attempt > 0 ? ", attempt " + std::to_string(run.attempt) : "");
}

}  // namespace

const RunTold* run_of(const core::Notification& notification, const core::Issue& issue) {
  if (issue.run.uid.nil()) return nullptr;
  const RunTold* best = nullptr;
  for (const RunTold& told : notification.runs) {
    if (!(told.run.uid == issue.run.uid)) continue;
    if (told.run.attempt == issue.run.attempt) return &told;
    best = best == nullptr && issue.run.attempt == 0 ? &told : best;
  }
  return best;
}

void keep_named_runs(core::Notification& notification) {
  std::set<const RunTold*> named;
  for (const auto& one : notification.issues) named.insert(run_of(notification, one.issue));
  std::vector<RunTold> kept;
  for (RunTold& told : notification.runs) {
    if (named.count(&told) > 0) kept.push_back(std::move(told));
  }
  notification.runs = std::move(kept);
}

std::string run_outcome(const RunTold& told) {
  if (was_stopped(told)) return "stopped" + (told.stop ? checkpoint_words(*told.stop) : "");
  if (!told.outcome.empty()) return end_words(told);
  if (!told.stop || told.stop->command_id.empty()) return {};
  return stop_progress(*told.stop) + checkpoint_words(*told.stop);
}

Rows stop_rows(const RunTold& told) {
  Rows out;
  if (told.stop) {
    add_run_row(out, "Stop", who_asked(*told.stop));
    add_run_row(out, "Replies", rank_answers(*told.stop));
    if (told.stop->state == "refused" || told.stop->state == "failed" ||
        told.stop->requested_by != "router") {
      add_run_row(out, "Reason", told.stop->reason);
    }
    add_run_row(out, "Checkpoint", checkpoint_row(*told.stop));
  }
  add_run_row(out, "Run ended", end_row(told));
  if (out.empty()) add_run_row(out, "Stop", "not requested; the run continues");
  return out;
}

Rows run_rows(const RunTold& told) {
  Rows out;
  add_run_row(out, "Job", told.run.job);
  add_run_row(out, "Run", run_row(told.run));
  add_run_row(out, told.hosts.size() > 1 ? "Hosts" : "Host", host_list(told.hosts), kMaxRunList);
  if (told.world_size > 1) add_run_row(out, "Ranks", std::to_string(told.world_size));
  if (told.outcome.empty() && told.step)
    add_run_row(out, "Latest step", std::to_string(*told.step));
  add_run_row(out, "Labels", label_list(told.labels), kMaxRunList);
  add_run_row(out, "Report", told.report);
  return out;
}

Rows run_rows(const core::Issue& issue) {
  Rows out;
  add_run_row(out, "Job", issue.run.job);
  add_run_row(out, "Run", run_row(issue.run));
  add_run_row(out, "Host", core::text_at(issue.run.ref, "host"));
  add_run_row(out, "Labels", label_list(issue.labels), kMaxRunList);
  add_run_row(out, "Report", std::string(annotation(issue, "report")));
  return out;
}

std::string checkpoint_place(const core::Checkpoint& checkpoint) {
  return (checkpoint.host.empty() ? "" : checkpoint.host + ":") + checkpoint.path;
}

}  // namespace tocsin::actions
