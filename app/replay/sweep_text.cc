// What a sweep found, for people and for programs.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ratio>
#include <utility>

#include "app/replay/sweep.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

/// What a value came to in one run, or in all of them.
struct Firings {
  const core::Issue* first = nullptr;
  std::uint64_t issues = 0;
  std::uint64_t runs = 0;  // that fired
};

Firings firings_of(const std::vector<IssueStory>& stories, const std::string& rule,
                   const core::RunUid* run, std::uint32_t attempt) {
  Firings out;
  std::vector<std::pair<core::RunUid, std::uint32_t>> runs;
  for (const IssueStory& story : stories) {
    const core::Issue& issue = *story.first;
    if (issue.rule != rule) continue;
    if (run != nullptr && (issue.run.uid != *run || issue.run.attempt != attempt)) continue;
    if (out.first == nullptr) out.first = &issue;
    ++out.issues;
    runs.emplace_back(issue.run.uid, issue.run.attempt);
  }
  std::sort(runs.begin(), runs.end());
  out.runs = static_cast<std::uint64_t>(std::unique(runs.begin(), runs.end()) - runs.begin());
  return out;
}

/// What stopping at the first issue would have spared, in hours of all workers together.
double hours_behind(const Firings& firings, const RunJudgement& run) {
  if (firings.first == nullptr) return 0;
  const std::chrono::duration<double, std::ratio<3600>> left = run.newest - firings.first->time;
  return std::max(left.count(), 0.0) * std::max<std::uint32_t>(run.world_size, 1);
}
bool completed(const RunJudgement& run) { return run.outcome == "completed"; }

/// What stopping at each first issue of a value comes to over all runs.
struct Stops {
  double hours_saved = 0;         // of runs that did not complete
  std::uint64_t false_stops = 0;  // runs that completed
};
Stops stops_of(const std::vector<IssueStory>& stories, const std::string& rule,
               const Judgement& judgement) {
  Stops out;
  for (const auto& [key, run] : judgement.runs) {
    const Firings one = firings_of(stories, rule, &key.first, key.second);
    if (one.first == nullptr) continue;
    if (completed(run)) {
      ++out.false_stops;
    } else {
      out.hours_saved += hours_behind(one, run);
    }
  }
  return out;
}

std::string hours_text(double hours) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", hours);
  return text.data();
}

std::string step_text(const Firings& firings) {
  if (firings.first == nullptr || !firings.first->step) return "–";
  return std::to_string(*firings.first->step);
}

std::string time_text(const Firings& firings) {
  return firings.first == nullptr ? "–" : core::to_rfc3339(firings.first->time);
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

}  // namespace

std::string sweep_text(const Sweep& sweep, const Judgement& judgement) {
  const auto stories = issue_stories(judgement);
  std::string out = "sweep of " + sweep.rule + "." + sweep.parameter + ", " +
                    std::to_string(sweep.values.size()) + " values\n";
  const std::string head = upper(sweep.parameter);
  if (judgement.runs.size() > 1) {
    std::vector<core::TableRow> rows{{head, "RUNS FIRED", "ISSUES", "HOURS SAVED", "FALSE STOPS"}};
    for (const SweepValue& value : sweep.values) {
      const Firings all = firings_of(stories, value.rule, nullptr, 0);
      const Stops stops = stops_of(stories, value.rule, judgement);
      rows.push_back({value.text,
                      std::to_string(all.runs) + " of " + std::to_string(judgement.runs.size()),
                      std::to_string(all.issues), hours_text(stops.hours_saved),
                      std::to_string(stops.false_stops)});
    }
    out += core::text_table(rows);
  }
  std::size_t quiet = 0;  // runs in which no value fires
  for (const auto& [key, run] : judgement.runs) {
    std::vector<core::TableRow> rows{{head, "FIRST STEP", "FIRST TIME", "ISSUES", "HOURS LEFT"}};
    bool fired = judgement.runs.size() == 1;
    for (const SweepValue& value : sweep.values) {
      const Firings one = firings_of(stories, value.rule, &key.first, key.second);
      fired = fired || one.issues > 0;
      rows.push_back({value.text, step_text(one), time_text(one), std::to_string(one.issues),
                      one.first == nullptr ? "–" : hours_text(hours_behind(one, run))});
    }
    quiet += fired ? 0 : 1;
    if (!fired) continue;
    out += "\n" + (run.run.job.empty() ? "" : core::visible(run.run.job) + "  ") +
           core::to_text(key.first) + "  attempt " + std::to_string(key.second) + "\n" +
           core::text_table(rows);
  }
  if (quiet > 0) {
    out += "\nno value fires in " + std::to_string(quiet) + (quiet == 1 ? " run\n" : " runs\n");
  }
  const std::string failed = failure_text(judgement);
  return out + (failed.empty() ? "" : "\n" + failed);
}

core::Value sweep_value(const Sweep& sweep, const Judgement& judgement) {
  const auto stories = issue_stories(judgement);
  core::ValueList rows;
  for (const auto& [key, run] : judgement.runs) {
    for (const SweepValue& value : sweep.values) {
      const Firings one = firings_of(stories, value.rule, &key.first, key.second);
      const bool stepped = one.first != nullptr && one.first->step;
      rows.push_back(core::ValueMap{
          {"run", core::to_text(key.first)},
          {"job", run.run.job},
          {"attempt", std::int64_t{key.second}},
          {"value", value.text},
          {"first_step", stepped ? core::Value(*one.first->step) : core::Value()},
          {"first_mode", one.first != nullptr && one.first->mode
                             ? core::Value(std::string(core::to_string(*one.first->mode)))
                             : core::Value()},
          {"first_time",
           one.first == nullptr ? core::Value() : core::Value(core::to_rfc3339(one.first->time))},
          {"issues", one.issues},
          {"outcome", run.outcome.empty() ? core::Value() : core::Value(run.outcome)},
          {"hours_left",
           one.first == nullptr ? core::Value() : core::Value(hours_behind(one, run))}});
    }
  }
  core::ValueList values;
  for (const SweepValue& value : sweep.values) {
    const Firings all = firings_of(stories, value.rule, nullptr, 0);
    const Stops stops = stops_of(stories, value.rule, judgement);
    values.push_back(core::ValueMap{{"value", value.text},
                                    {"runs_fired", all.runs},
                                    {"issues", all.issues},
                                    {"hours_saved", stops.hours_saved},
                                    {"false_stops", stops.false_stops}});
  }
  return core::ValueMap{{"rule", sweep.rule},
                        {"parameter", sweep.parameter},
                        {"values", std::move(values)},
                        {"rows", std::move(rows)},
                        {"failed", failure_value(judgement)}};
}

}  // namespace tocsin::app
