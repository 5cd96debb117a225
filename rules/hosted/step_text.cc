#include "rules/hosted/step_text.h"

#include <cmath>
#include <utility>

#include "core/json.h"
#include "core/statistics.h"
#include "core/text.h"

namespace tocsin::rules::hosted {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMostAnswer = std::size_t{16} << 20;
constexpr std::size_t kMostTold = 1000;
// Of one issue, so that its event stays one that every reader takes (60 KiB): a larger one could be
// neither written nor passed over, and the rule would stand still.
constexpr std::size_t kMostName = 256;
constexpr std::size_t kMostKey = 1024;
constexpr std::size_t kMostSentence = 8192;
constexpr std::size_t kMostEvidence = 16384;

std::string number_text(std::uint64_t number) { return std::to_string(number); }

ValueMap about_name(std::uint64_t hash, const Scope& scope) {
  ValueMap out{{"name", scope.text(hash)}};
  const Name* name = scope.find(hash);
  if (name == nullptr) return out;
  ValueList collections;
  for (const std::string& one : name->collections) collections.emplace_back(one);
  ValueList shape;
  for (const std::int64_t one : name->shape) shape.emplace_back(one);
  out.emplace_back("collections", std::move(collections));
  out.emplace_back("shape", std::move(shape));
  out.emplace_back("dtype", std::string(core::to_string(name->dtype)));
  return out;
}

Value extras_of(const StepRow& row) {
  ValueMap out;
  for (const SentStatistic& one : row.extras) {
    if (one.what.vector || one.values.empty()) continue;
    for (const core::Statistic& known : core::builtin_statistics()) {
      if (known.form != core::StatisticForm::sparse || known.id != one.what.id) continue;
      out.emplace_back(std::string(known.name), one.values.front());
    }
  }
  return out;
}

Value row_text(const StepRow& row, const Scope& scope) {
  const core::SummaryRow& r = row.row;
  ValueMap out{{"n", number_text(r.name)},
               {"w", scope.worker(row.worker)},
               {"role", std::string(core::to_string(row.role()))}};
  if (row.scalar) {
    out.emplace_back("v", r.sum);
    return out;
  }
  out.emplace_back("s", ValueList{r.count, r.sum, r.sumsq, r.m2, r.abs_sum, r.min, r.max, r.nan,
                                  r.posinf, r.neginf, r.zero, r.negative});
  const bool scaled = row.role() == core::Role::gradient && !row.has(core::meta::kUnscaled);
  if (scaled && row.loss_scale != 1) out.emplace_back("d", row.loss_scale);
  if (!row.extras.empty()) out.emplace_back("x", extras_of(row));
  return out;
}

double number_of(const Value& value, double otherwise) {
  if (const auto* real = core::as<double>(value)) return *real;
  if (const auto* whole = core::as<std::int64_t>(value)) return static_cast<double>(*whole);
  if (const auto* text = core::as<std::string>(value)) {
    if (*text == "Infinity") return HUGE_VAL;
    if (*text == "-Infinity") return -HUGE_VAL;
    if (*text == "NaN") return std::nan("");
  }
  return otherwise;
}

std::string cut(const Value& told, std::string_view key, std::size_t bytes) {
  const std::string text = core::text_at(told, key);
  return std::string(core::cut_utf8(text, bytes));
}

core::NamedNumber named_number(const Value& told, std::string_view name_key,
                               std::string_view number_key, std::string_view otherwise) {
  core::NamedNumber out;
  out.name = cut(told, name_key, kMostName);
  if (out.name.empty()) out.name = otherwise;
  if (const Value* number = core::find(told, number_key)) out.value = number_of(*number, 0);
  return out;
}

Told told_of(const Value& value) {
  Told out;
  out.key = cut(value, "key", kMostKey);
  out.label = core::text_at(value, "label") == "tensor" ? "tensor" : "key";
  out.summary = cut(value, "summary", kMostSentence);
  out.recommendation = cut(value, "recommendation", kMostSentence);
  out.severity = core::severity_from(core::text_at(value, "severity"));
  out.observed = named_number(value, "observed_name", "observed", "observed");
  if (core::find(value, "threshold") != nullptr) {
    out.op = cut(value, "operator", kMostName);
    if (out.op.empty()) out.op = ">";
    out.threshold = named_number(value, "threshold_name", "threshold", "threshold");
  }
  if (const auto* values = core::as<ValueMap>(core::find(value, "values"))) {
    const std::size_t bytes = core::to_json(*values).size();
    if (bytes <= kMostEvidence) {
      out.values = *values;
    } else {
      out.values = {{"left_out", "evidence of " + std::to_string(bytes) + " bytes; at most " +
                                     std::to_string(kMostEvidence) + " are told"}};
    }
  }
  return out;
}

}  // namespace

std::string open_request(std::uint64_t session, const HostedRule& rule, const Scope& scope,
                         const std::string& saved) {
  ValueMap out{{"type", "open"},
               {"session", session},
               {"run", scope.run()},
               {"job", scope.job()},
               {"rule", rule.name}};
  if (!saved.empty()) out.emplace_back("saved", saved);
  return core::to_json(out);
}

std::string step_request(std::uint64_t session, const KeptStep& step, std::size_t kept,
                         const Scope& scope, ToldNames& told, bool judge) {
  ValueList rows;
  ValueMap names;
  rows.reserve(step.rows.size());
  for (const StepRow& row : step.rows) {
    rows.push_back(row_text(row, scope));
    const bool known = scope.find(row.name()) != nullptr;
    const auto [at, fresh] = told.try_emplace(row.name(), known);
    if (!fresh && at->second == known) continue;
    at->second = known;
    names.emplace_back(number_text(row.name()), about_name(row.name(), scope));
  }
  ValueMap out{{"type", "step"},
               {"session", session},
               {"judge", judge},
               {"kept", std::uint64_t{kept}},
               {"mode", std::string(core::to_string(static_cast<core::Mode>(step.mode)))},
               {"step", step.step},
               {"global_step", step.global_step},
               {"time", step.time},
               {"world_size", std::int64_t{scope.world_size()}},
               {"rows", std::move(rows)}};
  if (!names.empty()) out.emplace_back("names", std::move(names));
  return core::to_json(out);
}

core::Result<Answer> read_answer(std::string_view text) {
  auto parsed = core::parse_json(text, kMostAnswer);
  if (!parsed) return core::Error{core::Code::data_loss, "its answer is " + parsed.error().message};
  const std::string type = core::text_at(*parsed, "type");
  Answer out;
  if (type == "error") {
    out.outcome = EvaluationOutcome::error;
    out.error = core::text_at(*parsed, "error");
    if (out.error.empty()) out.error = "it failed without a word";
    return out;
  }
  if (type != "result") {
    return core::Error{core::Code::data_loss, "its answer has the unknown type \"" + type + "\""};
  }
  const std::string outcome = core::text_at(*parsed, "outcome");
  if (outcome == "insufficient_data") out.outcome = EvaluationOutcome::insufficient_data;
  if (outcome == "not_applicable") out.outcome = EvaluationOutcome::not_applicable;
  if (const auto* list = core::as<ValueList>(core::find(*parsed, "issues"))) {
    for (const Value& one : *list) {
      if (out.issues.size() < kMostTold) out.issues.push_back(told_of(one));
    }
  }
  if (!out.issues.empty()) out.outcome = EvaluationOutcome::hit;
  if (const auto* saved = core::as<std::string>(core::find(*parsed, "saved"))) out.saved = *saved;
  return out;
}

}  // namespace tocsin::rules::hosted
