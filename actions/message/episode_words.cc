#include "actions/message/episode_words.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/value.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using core::Issue;

constexpr std::size_t kMaxEpisodeTitle = 90;
constexpr std::size_t kMaxEpisodeText = 2000;

constexpr std::size_t kLeastClause = 16;  // fewer bytes say nothing by themselves

struct Tense {
  std::string_view present, past;
};
// As rules make titles (rules::Verb): the first of them is the verb.
constexpr std::array<Tense, 6> kTenses{{{" is ", " was "},
                                        {" are ", " were "},
                                        {" has ", " had "},
                                        {" have ", " had "},
                                        {" does not ", " did not "},
                                        {" do not ", " did not "}}};

/// What stands before the first numbers or reasons of a sentence.
std::string_view first_clause(std::string_view text) {
  std::size_t end = text.size();
  for (const std::string_view mark : {". ", "; ", ": ", " (", ", "}) {
    end = std::min(end, text.find(mark, kLeastClause));
  }
  std::string_view clause = text.substr(0, end);
  while (!clause.empty() && (clause.back() == '.' || clause.back() == ' ')) clause.remove_suffix(1);
  return clause.empty() ? text : clause;
}

std::string step_name(const Issue& issue) {
  const bool plain =
      !issue.mode || *issue.mode == core::Mode::global || *issue.mode == core::Mode::train;
  return plain ? "step " : std::string(core::to_string(*issue.mode)) + " step ";
}

std::string cause_text(const core::Cause& cause) {
  std::string out = cause.rule;
  if (!cause.unit.empty()) out += " (" + cause.unit + ")";
  if (!cause.step) return out;
  out += " at ";
  if (cause.mode) out += std::string(core::to_string(*cause.mode)) + " ";
  return out + "step " + std::to_string(*cause.step);
}

// What was counted, in the plural: units are named "tensor=…", "metric=…". Empty: nothing says it.
std::string counted(const Issue& issue) {
  const core::Affected& all = issue.evidence.affected;
  const std::string_view unit = all.worst.empty() ? std::string_view() : all.worst.front().first;
  const std::string_view kind = unit.substr(0, unit.find('='));
  for (const std::string_view known : {"tensor", "metric", "layer", "worker", "node", "device"})
    if (kind == known && kind.size() < unit.size()) return std::string(known) + "s";
  if (issue.evidence.tensor || !issue.labels.get("tensor").empty()) return "tensors";
  return issue.labels.get("metric").empty() ? "" : "metrics";
}

}  // namespace

std::string number(double value) {
  std::string text = core::to_json(core::Value{value});
  if (text.size() > 1 && text.front() == '"') text = text.substr(1, text.size() - 2);  // "NaN"
  return text;
}

std::string when(core::WallTime time) {
  std::string text = core::to_rfc3339(time).substr(0, 19);
  if (text.size() > 10) text[10] = ' ';
  return text + " UTC";
}

std::string lasted(core::Duration duration) {
  struct Unit {
    std::int64_t seconds;
    const char* name;
  };
  static constexpr std::array<Unit, 4> kUnits{{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}}};
  std::int64_t left = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  std::string out;
  int shown = 0;
  for (const Unit& unit : kUnits) {
    if (left < unit.seconds || shown == 2) continue;
    out += (out.empty() ? "" : " ") + std::to_string(left / unit.seconds) + unit.name;
    left %= unit.seconds;
    ++shown;
  }
  return out;
}

std::string size_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits{"kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  auto value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), value < 9.95 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
  return out.data();
}

std::string title(const Issue& issue) {
  const std::string_view given = annotation(issue, "title");
  if (!given.empty()) return core::visible(given, kMaxEpisodeTitle);
  const std::string line = first_line(issue);
  return core::visible(first_clause(line), kMaxEpisodeTitle);
}

std::string past_title(const Issue& issue) {
  std::string text = title(issue);
  if (annotation(issue, "title").empty()) return text;  // anybody's words: no verb is known
  const Tense* verb = nullptr;
  std::size_t first = text.size();
  for (const Tense& tense : kTenses) {
    const std::size_t at = text.find(tense.present);
    if (at >= first) continue;
    first = at;
    verb = &tense;
  }
  if (verb != nullptr) text.replace(first, verb->present.size(), verb->past);
  return text;
}

std::string span_of_steps(const Issue& issue) {
  // A summary's own words may name the step already.
  if (!issue.step || title(issue).find(" step ") != std::string::npos) return {};
  const std::string name = step_name(issue);
  const std::string first = name + std::to_string(*issue.step);
  if (issue.status == core::IssueStatus::firing) return " since " + first;
  if (!issue.ending || !issue.ending->step) return " from " + first + " on";
  if (*issue.ending->step <= *issue.step) return " at " + first;
  return " from " + first + " to " + std::to_string(*issue.ending->step);
}

std::string resolution_words(const Issue& issue) {
  if (issue.status == core::IssueStatus::firing) return {};
  switch (issue.resolution) {
    case core::Resolution::recovered:
      return "recovered";
    case core::Resolution::job_ended:
      return "job ended";
    case core::Resolution::expired:
      return "no longer reported";
    case core::Resolution::manual:
      return "resolved by hand";
    case core::Resolution::superseded:
      return "superseded";
    case core::Resolution::none:
      return "over";
    default:
      break;
  }
  std::string words(core::to_string(issue.resolution));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string first_line(const Issue& issue) {
  if (!issue.summary.empty()) return core::visible(issue.summary, kMaxEpisodeText);
  const std::string sentence = evidence_sentence(issue);
  return sentence.empty() ? core::visible(issue.rule, kMaxEpisodeText) : sentence;
}

std::string evidence_sentence(const Issue& issue) {
  std::string out;
  const core::Evidence& evidence = issue.evidence;
  if (!evidence.observed.name.empty()) {
    out = evidence.observed.name + " is " + number(evidence.observed.value);
    if (evidence.threshold) {
      out += ", " + evidence.threshold->name + " " +
             (evidence.op.empty() ? "" : evidence.op + " ") + number(evidence.threshold->value);
    }
  }
  if (const std::string at = step_text(issue); !at.empty())
    out += (out.empty() ? "at " : ", at ") + at;
  if (const std::string place = where(issue); !place.empty()) out += " in " + place;
  return core::visible(out, 1000);
}

std::string seen(const Issue& issue) {
  const core::Evidence& evidence = issue.evidence;
  if (evidence.observed.name.empty()) return {};
  std::string out = evidence.observed.name + " = " + number(evidence.observed.value);
  if (evidence.threshold) {
    out += "; " + evidence.threshold->name + ": " + (evidence.op.empty() ? "" : evidence.op + " ") +
           number(evidence.threshold->value);
  }
  if (evidence.occurrences > 1) out += "; " + std::to_string(evidence.occurrences) + " times";
  return core::visible(out, kMaxEpisodeText);
}

std::string where(const Issue& issue) {
  std::string out;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) out += (out.empty() ? "" : ", ") + part;
  };
  add(issue.evidence.tensor ? issue.evidence.tensor->name : issue.labels.get("tensor"));
  add(issue.labels.get("metric"));
  add(issue.labels.get("worker"));
  add(issue.labels.get("node"));
  add(issue.labels.get("device"));
  return core::visible(out, kMaxEpisodeText);
}

std::string step_text(const Issue& issue) {
  if (!issue.step) return {};
  std::string out = "step " + std::to_string(*issue.step);
  if (issue.mode && *issue.mode != core::Mode::global)
    out += " (" + std::string(to_string(*issue.mode)) + ")";
  if (issue.epoch) out += ", epoch " + std::to_string(*issue.epoch);
  return out;
}

std::string affected(const Issue& issue) {
  const core::Affected& all = issue.evidence.affected;
  if (all.hit < 2) return {};
  const std::string what = counted(issue);
  const std::string of = std::to_string(all.evaluated) + (what.empty() ? "" : " " + what);
  return all.hit == all.evaluated ? "all " + of : std::to_string(all.hit) + " of " + of;
}

std::string causes(const Issue& issue) {
  std::string out;
  std::string before;  // two kinds of one finding read the same
  for (const core::Cause& cause : issue.caused_by) {
    const std::string text = cause_text(cause);
    if (text == before) continue;
    out += (out.empty() ? "" : "; ") + text;
    before = text;
  }
  return core::visible(out, kMaxEpisodeText);
}

std::string run_text(const core::RunRef& run) {
  return run.uid.nil() ? std::string() : core::to_text(run.uid);
}

std::string_view annotation(const Issue& issue, std::string_view name) {
  const auto found = std::find_if(issue.annotations.begin(), issue.annotations.end(),
                                  [&](const auto& one) { return one.first == name; });
  return found == issue.annotations.end() ? std::string_view() : found->second;
}

}  // namespace tocsin::actions
