#include "rules/engine/issues/standing.h"

#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

using core::Value;
using core::ValueList;

// "wait_for_all (comm.py:12), called from step (train.py:40)" of the thread that trains; frames
// begin with the innermost.
std::string place_of(const Value& said) {
  constexpr std::size_t kShown = 3;
  const auto* threads = core::as<ValueList>(core::find(said, "threads"));
  if (threads == nullptr || threads->empty()) return {};
  const auto* frames = core::as<ValueList>(core::find(threads->front(), "frames"));
  std::string out;
  std::size_t shown = 0;
  for (const Value& frame : frames == nullptr ? ValueList() : *frames) {
    const auto* text = core::as<std::string>(frame);
    if (text == nullptr || shown == kShown) break;
    out += (shown++ == 0 ? ": in " : ", called from ") + *text;
  }
  return out;
}

void add_evidence(const Value& said, Finding& finding) {
  for (const char* name : {"threads", "collectives"}) {
    if (const Value* value = core::find(said, name)) finding.with(name, *value);
  }
}

// Asked by an issue of the rule `asked_by`.
Standing place(const Value& said, std::string_view worker) {
  const std::string rule = core::text_at(said, "asked_by");
  const auto* threads = core::as<ValueList>(core::find(said, "threads"));
  const std::uint64_t count = threads == nullptr ? 0 : threads->size();
  Standing out{Standing::What::place, Finding::that("threads", static_cast<double>(count))};
  const std::string where = place_of(said);
  out.finding.says(sentence("{}{}, when {} asked for it.", worker,
                            where.empty() ? " had no frame of Python" : " was" + where.substr(1),
                            rule.empty() ? "somebody" : rule));
  for (const char* name : {"asked_by", "command_id"}) {
    const std::string text = core::text_at(said, name);
    if (!text.empty()) out.finding.with(name, text);
  }
  add_evidence(said, out.finding);
  return out;
}

}  // namespace

std::optional<Standing> standing_of(const core::Lifecycle& body, std::string_view worker) {
  const auto* findings = core::as<ValueList>(body.findings);
  if (findings == nullptr || findings->size() != 1) return std::nullopt;
  const Value& said = findings->front();
  const std::string kind = core::text_at(said, "kind");
  if (kind == "goes_on") return Standing{Standing::What::goes_on, {}};
  if (kind == "place") return place(said, worker);
  if (kind != "stands_still") return std::nullopt;
  const auto* count = core::as<std::int64_t>(core::find(said, "count"));
  const double seconds = count == nullptr ? 0 : static_cast<double>(*count);
  Standing out;
  out.finding = Finding::that("standing_seconds", seconds)
                    .says(sentence("{} stands still for {} s{}.", worker, seconds, place_of(said)));
  add_evidence(said, out.finding);
  return out;
}

}  // namespace tocsin::rules
