#include "app/view/run_card.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "app/view/summary_text.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::array<std::string_view, 4> kAnswers{"hit", "undecided", "ok", "not asked"};
constexpr std::size_t kOfRules = 3;  // of these
constexpr std::string_view kLow = "_low";
constexpr std::string_view kHigh = "_high";
constexpr std::string_view kNeeds = "needs_";
constexpr std::size_t kMostOfANumber = 200;  // bytes of one that is a text
constexpr std::size_t kMostNumbers = 4;      // of a line
constexpr std::size_t kMostLines = 2;        // of a question
constexpr std::size_t kColumns = 80;

std::size_t place_of(std::string_view answer) {
  return static_cast<std::size_t>(std::find(kAnswers.begin(), kAnswers.end(), answer) -
                                  kAnswers.begin());
}

std::string words(std::string_view name) {
  std::string out = core::visible(name);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

// "0.712", "1400", "nothing".
std::string shown(const core::Value& value) {
  if (const auto* real = core::as<double>(value); real != nullptr && std::isfinite(*real)) {
    const double size = std::fabs(*real);
    const bool whole = size < 1e15 && (size >= 999.5 || *real == std::trunc(*real));
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.3g", *real);
    return text.data();
  }
  return summary_line({{"", value}}, kMostOfANumber).substr(1);
}

bool is_zero(const core::Value& value) {
  const auto* real = core::as<double>(value);
  const auto* whole = core::as<std::int64_t>(value);
  return (real != nullptr && *real <= 0) || (whole != nullptr && *whole <= 0);
}

bool is_bound(const core::ValueMap& numbers, std::string_view name) {
  for (const std::string_view end : {kLow, kHigh}) {
    if (!name.ends_with(end)) continue;
    if (core::find(numbers, name.substr(0, name.size() - end.size())) != nullptr) return true;
  }
  return false;
}

// What is still needed, and when it comes; empty: nothing.
std::string needs_of(const core::ValueMap& numbers) {
  std::string out;
  for (const auto& [name, value] : numbers) {
    const bool whole = name == "needs";
    if ((!whole && !name.starts_with(kNeeds)) || is_zero(value)) continue;
    out += (out.empty() ? "needs " : ", ") + shown(value);
    if (!whole) out += " more " + words(std::string_view(name).substr(kNeeds.size()));
  }
  if (out.empty()) return out;
  if (const auto* at = core::find(numbers, "decides_at_update"); at != nullptr) {
    out += ", enough at update " + shown(*at);
  }
  const bool starves = core::find(numbers, "insufficient_data") != nullptr;
  return (starves ? "insufficient data: " : "") + out;
}

// The kind, what is needed, what has an interval, and some of the rest.
std::string numbers_of(const core::ValueMap& numbers) {
  std::vector<std::string> parts;
  std::vector<std::string> rest;
  if (const auto* kind = core::find(numbers, "kind")) parts.push_back(shown(*kind));
  if (std::string needs = needs_of(numbers); !needs.empty()) parts.push_back(std::move(needs));
  for (const auto& [name, value] : numbers) {
    if (is_bound(numbers, name) || name == "kind" || name == "needs" || name.starts_with(kNeeds) ||
        name == "decides_at_update" || name == "insufficient_data") {
      continue;
    }
    const core::Value* low = core::find(numbers, name + std::string(kLow));
    const core::Value* high = core::find(numbers, name + std::string(kHigh));
    const bool interval = low != nullptr && high != nullptr;
    std::string text = words(name) + " " + shown(value);
    if (interval) text += " (" + shown(*low) + " to " + shown(*high) + ")";
    (interval ? parts : rest).push_back(std::move(text));
  }
  parts.insert(parts.end(), std::make_move_iterator(rest.begin()),
               std::make_move_iterator(rest.end()));
  std::string out;
  for (std::size_t i = 0; i < std::min(parts.size(), kMostNumbers); ++i) {
    out += (i == 0 ? "" : ", ") + parts[i];
  }
  return out;
}

bool answers(const RunQuestion& question, std::string_view rule) {
  return !rule.empty() &&
         std::find(question.rules.begin(), question.rules.end(), rule) != question.rules.end();
}

std::string why_not(const RunQuestion& question, const CardSources& sources) {
  const std::string rule(question.rules[0]);
  for (const auto* one : sources.rules) {
    if (one->rule_type == rule && one->status == core::RuleState::error) {
      return "rule " + core::visible(one->rule) + " fails: " + core::visible(one->reason);
    }
  }
  if (!sources.configured.empty()) {
    if (std::string why = unasked(question, sources.configured); !why.empty()) return why;
  }
  if (rule == "ranks" && sources.world_size == 1) return "not a data-parallel job";
  return std::string(question.lacks);
}

AnsweredQuestion answered(const RunQuestion& question, const CardSources& sources) {
  AnsweredQuestion out;
  out.question = &question;
  for (const auto* rule : sources.rules) {
    const std::string& type = rule->rule_type.empty() ? rule->rule : rule->rule_type;
    if (!answers(question, type) || !is_card(rule->summary)) continue;
    for (CardLine& line : card_of(*rule)) out.lines.push_back(std::move(line));
  }
  // What has no numbers to show is no evidence beside what has.
  const bool numbers = std::any_of(out.lines.begin(), out.lines.end(),
                                   [](const auto& line) { return !line.numbers.empty(); });
  std::erase_if(out.lines, [&](const auto& line) {
    return numbers && line.answer == "ok" && line.numbers.empty();
  });
  for (const auto& [rule, title] : sources.firing) {
    const auto told = [&, name = rule](const CardLine& line) {
      return line.rule == name && line.answer == "hit";
    };
    if (!answers(question, rule) || std::any_of(out.lines.begin(), out.lines.end(), told)) continue;
    out.lines.push_back({"hit", core::visible(rule), "", core::visible(title)});
  }
  std::stable_sort(out.lines.begin(), out.lines.end(), [](const CardLine& a, const CardLine& b) {
    return place_of(a.answer) < place_of(b.answer);
  });
  out.answer = out.lines.empty() ? std::string(kAnswers.back()) : out.lines.front().answer;
  if (out.lines.empty()) out.why = why_not(question, sources);
  return out;
}

std::string line_text(const CardLine& line) {
  return line.subject + (line.subject.empty() || line.numbers.empty() ? "" : ": ") + line.numbers;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

}  // namespace

bool is_card(const core::ValueMap& summary) {
  return !summary.empty() && std::all_of(summary.begin(), summary.end(), [](const auto& entry) {
    return place_of(entry.first) < kOfRules && core::as<core::ValueMap>(entry.second) != nullptr;
  });
}

std::vector<CardLine> card_of(const core::RuleStatusEvent& rule) {
  std::vector<CardLine> out;
  for (const std::string_view answer : kAnswers) {
    const auto* subjects = core::as<core::ValueMap>(core::find(rule.summary, answer));
    if (subjects == nullptr) continue;
    for (const auto& [subject, value] : *subjects) {
      const auto* numbers = core::as<core::ValueMap>(value);
      out.push_back({std::string(answer), core::visible(rule.rule), core::visible(subject),
                     numbers == nullptr ? shown(value) : numbers_of(*numbers)});
    }
  }
  return out;
}

std::vector<AnsweredQuestion> run_card(const CardSources& sources) {
  std::vector<AnsweredQuestion> out;
  for (const RunQuestion& question : run_questions()) out.push_back(answered(question, sources));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return place_of(a.answer) < place_of(b.answer);
  });
  return out;
}

std::string card_counts(const std::vector<AnsweredQuestion>& card) {
  std::string out;
  for (const std::string_view answer : kAnswers) {
    const auto count = std::count_if(card.begin(), card.end(),
                                     [&](const auto& one) { return one.answer == answer; });
    if (count == 0) continue;
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(answer);
  }
  return out;
}

std::string card_text(const std::vector<AnsweredQuestion>& card) {
  std::string out;
  for (const AnsweredQuestion& one : card) {
    const std::string lead =
        "  " + padded(one.answer, 11) + padded(std::string(one.question->name), 11);
    if (one.lines.empty()) out += core::wrapped(lead, one.why, kColumns, lead.size());
    for (std::size_t i = 0; i < std::min(one.lines.size(), kMostLines); ++i) {
      const bool same = one.lines[i].answer == one.answer;
      std::string text = line_text(one.lines[i]);
      if (!same) text = one.lines[i].answer + ": " + text;
      if (i + 1 == kMostLines && one.lines.size() > kMostLines) {
        text += "; and " + std::to_string(one.lines.size() - kMostLines) + " more";
      }
      out +=
          core::wrapped(i == 0 ? lead : std::string(lead.size(), ' '), text, kColumns, lead.size());
    }
  }
  return out;
}

core::Value card_value(const std::vector<AnsweredQuestion>& card) {
  core::ValueList out;
  for (const AnsweredQuestion& one : card) {
    core::ValueList lines;
    for (const CardLine& line : one.lines) {
      lines.emplace_back(core::ValueMap{{"answer", line.answer},
                                        {"rule", line.rule},
                                        {"subject", line.subject},
                                        {"numbers", line.numbers}});
    }
    out.emplace_back(core::ValueMap{{"number", std::int64_t{one.question->number}},
                                    {"question", std::string(one.question->name)},
                                    {"asks", std::string(one.question->asks)},
                                    {"answer", one.answer},
                                    {"why", one.why},
                                    {"lines", std::move(lines)}});
  }
  return out;
}

}  // namespace tocsin::app
