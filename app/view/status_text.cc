#include "app/view/status_text.h"

#include <algorithm>
#include <set>

#include "app/health/own_issues.h"
#include "app/view/ack_words.h"
#include "app/view/run_card.h"
#include "app/view/summary_text.h"
#include "app/view/view_text.h"
#include "app/view/view_words.h"
#include "core/json.h"
#include "core/text.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using Row = core::TableRow;

constexpr std::size_t kMostOfASummary = 400;  // bytes of a line
constexpr std::size_t kMostOfAHit = 160;      // bytes of an issue on a run's card

std::string state_of(const core::JobEvent& run) {
  if (run.phase != core::JobPhase::ended) return "running";
  return run.outcome.empty() ? "ended" : core::visible(run.outcome);
}

bool is_running(const core::JobEvent& run) { return run.phase != core::JobPhase::ended; }

// A run is shown while it goes on and for a day after; one that is asked for at any time.
bool is_shown(const TopicView& view, const core::JobEvent& run, core::WallTime now) {
  return view.of_one_run() || is_running(run) || now - run.time < 24h;
}

// Running ones, then what ended within a day; the newest first.
std::vector<const core::JobEvent*> recent_runs(const TopicView& view, core::WallTime now) {
  std::vector<const core::JobEvent*> out;
  for (const auto& [uid, run] : view.runs()) {
    if (is_shown(view, run, now)) out.push_back(&run);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
    return std::pair(is_running(*a), a->time) > std::pair(is_running(*b), b->time);
  });
  return out;
}

// Of the runs that are shown, and of runs that nothing else is known of; the newest first.
std::vector<std::pair<core::RunUid, const TopicView::SeenStop*>> recent_stops(const TopicView& view,
                                                                              core::WallTime now) {
  std::vector<std::pair<core::RunUid, const TopicView::SeenStop*>> out;
  for (const auto& [uid, stop] : view.stops()) {
    const auto run = view.runs().find(uid);
    if (run == view.runs().end() || is_shown(view, run->second, now)) out.emplace_back(uid, &stop);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.second->command.issued_at > b.second->command.issued_at;
  });
  return out;
}

// What rules have summed up of the runs that are shown; `cards`: the answers to questions, or all the rest.
std::vector<const core::RuleStatusEvent*> sums(const TopicView& view, core::WallTime now,
                                               bool cards) {
  std::vector<const core::RuleStatusEvent*> out;
  for (const auto* run : recent_runs(view, now)) {
    for (auto rule = view.rules().lower_bound({run->run.uid, ""});
         rule != view.rules().end() && rule->first.first == run->run.uid; ++rule) {
      const core::ValueMap& told = rule->second.summary;
      if (!told.empty() && is_card(told) == cards) out.push_back(&rule->second);
    }
  }
  return out;
}

std::vector<const core::RuleStatusEvent*> all_sums(const TopicView& view, core::WallTime now) {
  auto out = sums(view, now, true);
  const auto rest = sums(view, now, false);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

// A process says it of itself.
bool is_own(const std::string& rule) {
  const auto own = own_issues();
  return std::any_of(own.begin(), own.end(),
                     [&](const core::OwnIssue& one) { return one.name == rule; });
}

// One sentence each.
std::vector<std::string> unhealthy(const TopicView& view, core::WallTime now) {
  std::vector<std::string> out = view.remarks();
  for (const auto& [integration, last] : view.deliveries()) {
    const bool failed = last.state == core::DeliveryState::dead ||
                        last.state == core::DeliveryState::expired ||
                        (last.state == core::DeliveryState::pending && last.attempt > 1);
    if (!failed) continue;
    out.push_back("deliveries of " + core::visible(integration) + " fail: " +
                  std::string(core::to_string(last.state)) + ", " + core::visible(last.code) + " " +
                  core::visible(last.detail) + " (" + ago(last.stages.answered, now) + ")");
  }
  for (const auto& [key, rule] : view.rules()) {
    const auto run = view.runs().find(key.first);
    if (run == view.runs().end() || !is_running(run->second)) continue;
    if (rule.status == core::RuleState::error) {
      out.push_back("rule " + core::visible(rule.rule) + " fails on " + job_of(view, key.first) +
                    ": " + core::visible(rule.reason));
    } else if (rule.status == core::RuleState::no_data && !rule.missing.empty()) {
      out.push_back("rule " + core::visible(rule.rule) + " has no data of " +
                    job_of(view, key.first) + ": " + core::visible(rule.missing.front()) +
                    " is missing");
    }
  }
  for (const auto& [key, seen] : view.issues()) {
    if (seen.newest.status == core::IssueStatus::firing && is_own(seen.newest.rule)) {
      out.push_back(core::visible(seen.newest.rule) + ": " + core::visible(seen.newest.summary));
    }
  }
  if (view.refused().records > 0) {
    const bool one = view.refused().records == 1;
    out.push_back(
        std::to_string(view.refused().records) +
        (one ? " record could not be read and lies" : " records could not be read and lie") +
        " in the topic dlq; newest: " + core::visible(view.refused().newest));
  }
  return out;
}

std::vector<const TopicView::SeenIssue*> open_issues(const TopicView& view) {
  std::vector<const TopicView::SeenIssue*> out;
  for (const auto& [key, seen] : view.issues()) {
    if (seen.newest.status == core::IssueStatus::firing) out.push_back(&seen);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
    return std::pair(a->newest.severity, b->since) > std::pair(b->newest.severity, a->since);
  });
  return out;
}

std::string stop_phase(const TopicView::SeenStop& stop) {
  if (stop.command.dry_run) return "dry run";
  if (stop.told.state.starts_with("platform")) return core::visible(stop.told.state);
  return stop.newest ? core::visible(stop.newest->phase) : "asked, no answer yet";
}

// A rule, or the person who asked.
std::string asked_by(const core::Command& command) {
  const std::string& rule = command.reason.rule;
  return rule.empty() ? core::visible(command.requested_by) : "rule " + core::visible(rule);
}

// "node-7:/checkpoints/step-357.pt"
std::string checkpoint_of(const TopicView::SeenStop& stop) {
  if (!stop.checkpoint) return "";
  const core::Ack& ack = *stop.checkpoint;
  return (ack.node.empty() ? "" : core::visible(ack.node) + ":") +
         core::visible(ack.checkpoint_path);
}

core::Value checkpoint_value(const TopicView::SeenStop& stop) {
  if (!stop.checkpoint) return {};
  return core::ValueMap{{"path", stop.checkpoint->checkpoint_path},
                        {"host", stop.checkpoint->node},
                        {"step", stop.checkpoint->step}};
}

core::Value parsed(const std::string& json) {
  const auto value = core::parse_json(json, 1U << 20);
  return value ? *value : core::Value();
}

std::string heading(const char* name, std::size_t count) {
  return std::string("\n") + name + (count == 0 ? ": none\n" : "\n");
}

// The first ones of a list, as lines, and how many more there are.
class Part {
 public:
  Part(const char* name, std::size_t all, std::size_t most)
      : name_(name), all_(all), shown_(std::min(all, most)) {}
  [[nodiscard]] std::size_t shown() const { return shown_; }
  [[nodiscard]] std::string with(const std::string& lines) const {
    std::string out = heading(name_, all_) + (all_ == 0 ? "" : lines);
    if (shown_ < all_) out += "  … and " + std::to_string(all_ - shown_) + " more: --all\n";
    return out;
  }

 private:
  const char* name_;
  std::size_t all_;
  std::size_t shown_;
};

// A pause holds for the attempt that it was asked of, until it is taken back or its steps are over.
const core::Command* pause_of(const TopicView& view, const core::JobEvent& run) {
  const auto found = view.pauses().find(run.run.uid);
  if (found == view.pauses().end() || found->second.attempt != run.run.attempt ||
      !is_running(run)) {
    return nullptr;
  }
  const auto* until = core::as<std::int64_t>(core::find(found->second.args, "until_step"));
  return until != nullptr && run.step.value_or(0) >= *until ? nullptr : &found->second;
}

std::string paused_by(const core::Command* pause) {
  return pause == nullptr ? "" : ", capture paused by " + core::visible(pause->requested_by);
}

std::string runs_part(const TopicView& view, core::WallTime now, std::size_t most) {
  const auto runs = recent_runs(view, now);
  const Part part("runs", runs.size(), most);
  std::vector<Row> rows{{"JOB", "RUN", "ATTEMPT", "STATE", "STEP", "LAST SEEN"}};
  for (std::size_t i = 0; i < part.shown(); ++i) {
    const core::JobEvent& run = *runs[i];
    rows.push_back({core::visible(run.run.job), short_run(run.run.uid),
                    std::to_string(run.run.attempt), state_of(run) + paused_by(pause_of(view, run)),
                    run.step ? std::to_string(*run.step) : "–", ago(run.time, now)});
  }
  return part.with(core::text_table(rows));
}

std::string sums_part(const TopicView& view, core::WallTime now, std::size_t most) {
  const auto told = sums(view, now, false);
  const Part part("rule summaries", told.size(), most);
  std::string lines;
  for (std::size_t i = 0; i < part.shown(); ++i) {
    lines += "  " + job_of(view, told[i]->run.uid) + ": " + core::visible(told[i]->rule) + ": " +
             summary_line(told[i]->summary, kMostOfASummary) + "\n";
  }
  return part.with(lines);
}

std::vector<AnsweredQuestion> card_of_run(const TopicView& view, const core::JobEvent& run) {
  CardSources sources;
  for (auto rule = view.rules().lower_bound({run.run.uid, ""});
       rule != view.rules().end() && rule->first.first == run.run.uid; ++rule) {
    sources.rules.push_back(&rule->second);
  }
  sources.configured = run.rules;
  sources.world_size = run.world_size;
  for (const auto& [key, seen] : view.issues()) {
    if (seen.newest.run.uid != run.run.uid || seen.newest.status != core::IssueStatus::firing) {
      continue;
    }
    sources.firing.emplace_back(seen.newest.rule, core::cut_utf8(seen.newest.summary, kMostOfAHit));
  }
  return run_card(sources);
}

// Of one run its whole card; of several, where any question was answered, what they come to and what is hit.
std::string questions_part(const TopicView& view, core::WallTime now, std::size_t most) {
  std::vector<std::pair<const core::JobEvent*, std::vector<AnsweredQuestion>>> cards;
  for (const auto* run : recent_runs(view, now)) {
    std::vector<AnsweredQuestion> card = card_of_run(view, *run);
    const bool any =
        std::any_of(card.begin(), card.end(), [](const auto& one) { return !one.lines.empty(); });
    if (any || view.of_one_run()) cards.emplace_back(run, std::move(card));
  }
  if (cards.empty()) return "";
  const Part part("questions", cards.size(), most);
  std::string lines;
  for (std::size_t i = 0; i < part.shown(); ++i) {
    auto& [run, card] = cards[i];
    lines += "  " + job_of(view, run->run.uid) + " " + short_run(run->run.uid) +
             (run->step ? " at step " + std::to_string(*run->step) : "") + ": " +
             card_counts(card) + "\n";
    if (!view.of_one_run()) {
      std::erase_if(card, [](const auto& one) { return one.answer != "hit"; });
    }
    lines += card_text(card);
  }
  return part.with(lines);
}

std::string issues_part(const TopicView& view, core::WallTime now, std::size_t most,
                        const RoutingSight& sight) {
  auto open = open_issues(view);
  const Part part("open issues", open.size(), most);
  open.resize(part.shown());
  return part.with(issues_text(open, view, now, sight));
}

std::string stops_part(const TopicView& view, core::WallTime now, std::size_t most) {
  const auto stops = recent_stops(view, now);
  const Part part("stops", stops.size(), most);
  std::vector<Row> rows{{"JOB", "RUN", "STATE", "REQUESTED", "BY", "CHECKPOINT", "WHY"}};
  for (std::size_t i = 0; i < part.shown(); ++i) {
    const auto& [run, stop] = stops[i];
    rows.push_back({job_of(view, run), short_run(run), stop_phase(*stop),
                    ago(stop->command.issued_at, now), asked_by(stop->command),
                    checkpoint_of(*stop), core::visible(stop->command.reason.summary)});
  }
  return part.with(core::text_table(rows));
}

std::string silences_part(const TopicView& view, core::WallTime now) {
  std::vector<Row> rows{{"ID", "UNTIL", "BY", "MATCHERS", "COMMENT"}};
  for (const auto* silence : in_force(view, now)) {
    rows.push_back({short_id(silence->id), core::to_rfc3339(silence->ends_at),
                    core::visible(silence->created_by), core::visible(matchers_text(*silence)),
                    core::visible(silence->comment)});
  }
  return rows.size() == 1 ? "" : heading("silences", rows.size() - 1) + core::text_table(rows);
}

std::string unhealthy_part(const TopicView& view, core::WallTime now, std::size_t most) {
  const auto bad = unhealthy(view, now);
  const Part part("unhealthy", bad.size(), most);
  std::string lines;
  for (std::size_t i = 0; i < part.shown(); ++i) lines += "  " + bad[i] + "\n";
  return part.with(lines);
}

}  // namespace

std::string status_text(const TopicView& view, const std::string& transport, core::WallTime now,
                        std::size_t most, const RoutingSight& sight) {
  return transport + "\n" + runs_part(view, now, most) + questions_part(view, now, most) +
         sums_part(view, now, most) + issues_part(view, now, most, sight) +
         stops_part(view, now, most) + silences_part(view, now) + unhealthy_part(view, now, most);
}

bool is_unhealthy(const TopicView& view, core::WallTime now) {
  return !unhealthy(view, now).empty();
}

std::string status_json(const TopicView& view, const std::string& transport, core::WallTime now,
                        const Moment& moment, const RoutingSight& sight) {
  core::ValueList runs;
  for (const auto* run : recent_runs(view, now)) {
    runs.push_back(core::ValueMap{{"run", core::to_text(run->run.uid)},
                                  {"job", run->run.job},
                                  {"attempt", std::int64_t{run->run.attempt}},
                                  {"state", state_of(*run)},
                                  {"captures_paused", pause_of(view, *run) != nullptr},
                                  {"step", run->step ? core::Value(*run->step) : core::Value()},
                                  {"last_heard_of", core::to_rfc3339(run->time)},
                                  {"card", card_value(card_of_run(view, *run))}});
  }
  core::ValueList issues;
  core::ValueList acknowledgements;
  std::set<std::string> taken_on;
  const HeldBackView held_back(view, sight, now);
  for (const auto* seen : open_issues(view)) {
    const HeldBack held = held_back.of(view, core::issue_key(seen->newest.labels), *seen);
    issues.push_back(issue_with_held_back(seen->newest, held));
    if (held.ack && taken_on.insert(held.ack->id).second) {
      acknowledgements.push_back(parsed(ack_json(*held.ack)));
    }
  }
  core::ValueList stops;
  for (const auto& [run, stop] : recent_stops(view, now)) {
    const core::Command& command = stop->command;
    stops.push_back(
        core::ValueMap{{"run", core::to_text(run)},
                       {"command_id", command.command_id},
                       {"rule", command.reason.rule},
                       {"requested_by", command.requested_by},
                       {"reason", command.reason.summary},
                       {"dry_run", command.dry_run},
                       {"phase", stop->newest ? core::Value(stop->newest->phase) : core::Value()},
                       {"checkpoint", checkpoint_value(*stop)},
                       {"issued_at", core::to_rfc3339(command.issued_at)}});
  }
  core::ValueList summaries;
  for (const auto* rule : all_sums(view, now)) {
    summaries.push_back(core::ValueMap{{"run", core::to_text(rule->run.uid)},
                                       {"attempt", std::int64_t{rule->run.attempt}},
                                       {"rule", rule->rule},
                                       {"summary", rule->summary}});
  }
  core::ValueList silences;
  for (const auto* silence : in_force(view, now)) {
    silences.push_back(parsed(silence_json(*silence)));
  }
  core::ValueList bad;
  for (std::string& sentence : unhealthy(view, now)) bad.emplace_back(std::move(sentence));
  core::ValueMap out{{"transport", transport},
                     {"runs", std::move(runs)},
                     {"issues", std::move(issues)},
                     {"stops", std::move(stops)},
                     {"summaries", std::move(summaries)},
                     {"silences", std::move(silences)},
                     {"acknowledgements", std::move(acknowledgements)},
                     {"unhealthy", std::move(bad)}};
  if (moment.at) out.emplace_back("as_of", core::to_rfc3339(*moment.at));
  return core::to_json(out);
}

}  // namespace tocsin::app
