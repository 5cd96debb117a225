#include "app/log/log_console.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kCyan = "36";
constexpr std::string_view kDim = "2";

// How an event is told. {field} is the field's value; what stands in […] goes when one of its
// fields is empty. `\t` separates the sentence from what is shown dimmed behind it.
struct Phrase {
  std::string_view event;
  std::string_view label;
  std::string_view colour;
  std::string_view text;
};

constexpr auto kPhrases = std::to_array<Phrase>({
    {"issue_fired", "ISSUE", "",
     "{job}: {rule}[, in {shadow}] ({severity}): {summary}\t[ → {advice}]"},
    {"issue_resolved", "OVER ", kGreen,
     "{job}: {rule}[, in {shadow},] is over[ ({resolution})]: {summary}"},
    {"job_started", "JOB  ", kCyan, "{job} started[, attempt {attempt}]\t[  run {run}]"},
    {"job_ended", "JOB  ", kCyan,
     "{job} ended: {outcome}[, exit code {exit_code}][ at step {step}]\t[  run {run}]"},
    {"rule_summed_up", "SUM  ", kCyan, "{job}: {rule}: {summary}\t[  run {run}]"},
    {"notification_decided", "SEND ", "",
     "{integration}: {reason}\t[  issues: {issues}][, {kind}]"},
    {"delivery_finished", "SENT ", "", "{integration}: {state}[ ({detail})]\t[  {latency_ms} ms]"},
    {"delivery_retried", "RETRY", kYellow,
     "{integration}: {class}[ {code}][: {detail}]\t[  attempt {attempt}]"},
    {"endpoint_ordered", "ORDER", kYellow, "{integration}: {do}, asked by {by}[: {comment}]"},
    {"stop_asked", "STOP ", kYellow,
     "[{job}: ]{requested_by} requested {mode}[, all ranks after step {not_before_step}][: "
     "{reason}]\t[  run {run}]"},
    {"stop_progress", "STOP ", kYellow,
     "{phase}[ at step {step}][, checkpoint {checkpoint}][: {reason}]\t[  {worker}][, run {run}]"},
    {"capture_answered", "REPLY", kCyan,
     "{action}: {phase}[ from step {effective_step}][: {reason}]\t[  {worker}][, run {run}]"},
    {"agent_asked", "AGENT", kCyan, "{phase}: {detail}[, asked by {by}]"},
    {"stop_state_changed", "STOP ", kYellow, "{from} → {to}[: {reason}]\t[  run {run}]"},
    {"platform_asked", "STOP ", kYellow, "{detail}\t[  {command}]"},
    {"platform_unreachable", "WARN ", kYellow, "{detail}; asked again\t[  {command}]"},
    {"started", "INFO ", "", "tocsin {version} listens on http://{http}"},
    {"ready", "INFO ", kGreen, "ready: {transport}\t  http://{http}/metrics"},
    {"stopping", "INFO ", "", "stopping (signal {signal}); a second signal ends at once"},
    {"stopped", "INFO ", "", "stopped"},
    {"start_failed", "ERROR", kRed, "could not start: {error}"},
    {"configuration_doubtful", "WARN ", kYellow, "{at}: {problem}"},
    {"configuration_reloaded", "INFO ", kGreen,
     "{file} was reloaded: {rules} rules[, added {added}][, changed {changed}][, removed "
     "{removed}]"},
    {"configuration_error", "ERROR", kRed, "{at}: {problem}"},
    {"configuration_not_reloaded", "ERROR", kRed,
     "{file} has errors; the previous configuration stays in effect"},
    {"configuration_needs_restart", "WARN ", kYellow,
     "{sections} changed in the configuration; restart to apply the change"},
    {"transport_unreachable", "WARN ", kYellow, "{transport} does not answer: {error}"},
    {"commit_failed", "WARN ", kYellow, "a commit failed and is retried: {error}\t[  {stage}]"},
    {"record_refused", "WARN ", kYellow, "a record cannot be read: {error}\t[  {topic}]"},
    {"journal_records_lost", "WARN ", kYellow, "the journal lost records: {error}"},
});

const Phrase* phrase_of(std::string_view event) {
  for (const Phrase& phrase : kPhrases) {
    if (phrase.event == event) return &phrase;
  }
  return nullptr;
}

std::string shown(const core::Value& value) {
  if (value.is_null()) return {};
  if (const auto* text = core::as<std::string>(value)) return core::visible(*text);
  if (const auto* number = core::as<double>(value)) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.4g", *number);
    return digits.data();
  }
  return core::visible(core::to_json(value));
}

std::string field(const core::ValueMap& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return shown(value);
  }
  return {};
}

// nullopt: a field of it is empty.
std::optional<std::string> filled(std::string_view text, const core::ValueMap& fields,
                                  bool optional) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '{') {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const std::size_t close = text.find('}');
    const std::string value = field(fields, text.substr(1, close - 1));
    if (value.empty() && optional) return std::nullopt;
    out += value;
    text.remove_prefix(close + 1);
  }
  return out;
}

std::string sentence(std::string_view text, const core::ValueMap& fields) {
  std::string out;
  while (!text.empty()) {
    const bool optional = text.front() == '[';
    if (optional) text.remove_prefix(1);
    const std::size_t end = std::min(text.find(optional ? ']' : '['), text.size());
    if (const auto part = filled(text.substr(0, end), fields, optional)) out += *part;
    text.remove_prefix(std::min(end + (optional ? 1 : 0), text.size()));
  }
  return out;
}

std::string plain(std::string_view event, const core::ValueMap& fields) {
  std::string out;
  for (const char c : event) out += c == '_' ? ' ' : c;
  out += '\t';
  for (const auto& [name, value] : fields) {
    if (const std::string text = shown(value); !text.empty()) out += "  " + name + "=" + text;
  }
  return out;
}

std::string_view level_colour(core::Level level) {
  if (level == core::Level::error) return kRed;
  if (level == core::Level::warn) return kYellow;
  return level == core::Level::debug ? kDim : "";
}

std::string_view level_label(core::Level level) {
  constexpr std::array<std::string_view, 4> kLabels{"DEBUG", "INFO ", "WARN ", "ERROR"};
  return kLabels[static_cast<std::size_t>(level)];
}

// An issue's colour is its severity's, whatever the level of its line.
std::string_view colour_of(const Phrase* phrase, core::Level level, const core::ValueMap& fields) {
  if (phrase != nullptr && phrase->event == "issue_fired") {
    const std::string severity = field(fields, "severity");
    if (severity == "error" || severity == "critical") return kRed;
    return severity == "warning" ? kYellow : kCyan;
  }
  if (level >= core::Level::warn || phrase == nullptr) return level_colour(level);
  return phrase->colour;
}

std::string painted(std::string_view text, std::string_view colour, bool on) {
  if (!on || colour.empty() || text.empty()) return std::string(text);
  return "\033[" + std::string(colour) + "m" + std::string(text) + "\033[0m";
}

std::string local_time(core::WallTime time) {
  const auto seconds = static_cast<std::time_t>(core::nanoseconds(time) / 1'000'000'000);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 16> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%H:%M:%S", &parts);
  return {text.data(), length};
}

}  // namespace

std::string console_line(core::Level level, std::string_view event, const core::ValueMap& fields,
                         core::WallTime time, bool colour) {
  const Phrase* phrase = phrase_of(event);
  const std::string text =
      phrase != nullptr ? sentence(phrase->text, fields) : plain(event, fields);
  const std::size_t tab = std::min(text.find('\t'), text.size());
  const std::string_view aside = std::string_view(text).substr(std::min(tab + 1, text.size()));
  std::string out = painted(local_time(time), kDim, colour) + " ";
  out += painted(phrase != nullptr ? phrase->label : level_label(level),
                 colour_of(phrase, level, fields), colour);
  out += " " + text.substr(0, tab) + painted(aside, kDim, colour);
  if (const std::string more = field(fields, "suppressed"); !more.empty()) {
    out += " (" + more + " more like this were left out)";
  }
  return out;
}

bool shows_colour(int descriptor) {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (refused == nullptr || *refused == '\0') &&
         terminal != nullptr && std::string_view(terminal) != "dumb";
}

}  // namespace tocsin::app
