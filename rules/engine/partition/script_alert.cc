#include "rules/engine/partition/script_alert.h"

#include <algorithm>

#include "core/text.h"

namespace tocsin::rules {
namespace {

using core::Value;
using core::ValueList;

// It becomes a label and the subject of a message: one line.
std::string title_of(const Value& said) {
  const std::string text = core::text_at(said, "title");
  std::string title(core::cut_utf8(text, ScriptAlert::kMaxTitle));
  const auto control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
  };
  std::replace_if(title.begin(), title.end(), control, ' ');
  return title.find_first_not_of(' ') == std::string::npos ? "(without a title)" : title;
}

}  // namespace

std::optional<ScriptAlert> script_alert_of(const core::Lifecycle& body) {
  const auto* findings = core::as<ValueList>(body.findings);
  if (findings == nullptr || findings->size() != 1) return std::nullopt;
  const Value& said = findings->front();
  if (core::text_at(said, "kind") != "alert") return std::nullopt;
  ScriptAlert out;
  out.title = title_of(said);
  const std::string text = core::text_at(said, "text");
  out.finding.summary = out.finding.title = out.title;
  out.finding.description = core::cut_utf8(text, ScriptAlert::kMaxText);
  out.finding.severity = core::severity_from(core::text_at(said, "level"));
  const auto* count = core::as<std::int64_t>(core::find(said, "count"));
  // How often it was said since it was told last, this time included.
  out.finding.observed = {
      "times_said",
      count == nullptr ? 1.0 : static_cast<double>(std::max<std::int64_t>(*count, 1))};
  out.finding.with("title", out.title);
  if (!out.finding.description.empty()) out.finding.with("text", out.finding.description);
  return out;
}

}  // namespace tocsin::rules
