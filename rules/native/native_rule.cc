#include "rules/native/native_rule.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tocsin::rules::native {
namespace {

constexpr std::size_t kMostState = 65536;

/// Behind the library's own state of a unit: what it said last.
struct Last {
  double observed = 0;
  double threshold = 0;
  std::int64_t code = 0;
};

core::Error wrong(const Library& library, const std::string& what) {
  return core::invalid_argument(library.path + " describes itself wrongly: " + what);
}

std::string filled(const std::string& text, const Subject& subject, const Last& last) {
  const std::array<std::pair<std::string_view, std::string>, 5> words{
      {{"{name}", subject.name},
       {"{place}", subject.place()},
       {"{worker}", subject.worker},
       {"{observed}", figure(last.observed)},
       {"{threshold}", figure(last.threshold)}}};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = std::find_if(words.begin(), words.end(), [&](const auto& word) {
      return text.compare(at, word.first.size(), word.first) == 0;
    });
    if (found == words.end()) {
      out += text[at++];
    } else {
      out += found->second;
      at += found->first.size();
    }
  }
  return out;
}

std::vector<std::string> texts_at(const core::Value& map, std::string_view key) {
  std::vector<std::string> out;
  if (const auto* list = core::as<core::ValueList>(core::find(map, key))) {
    for (const core::Value& one : *list) {
      if (const auto* text = core::as<std::string>(one)) out.push_back(*text);
    }
  }
  return out;
}

void take_text(const core::Value& map, std::string_view key, std::string& out) {
  if (std::string text = core::text_at(map, key); !text.empty()) out = std::move(text);
}

tocsin_rule_row row_of(const RowBatch& batch, const Row& row) {
  tocsin_rule_row out{};
  out.size = sizeof out;
  out.mode = static_cast<std::uint8_t>(batch.mode);
  out.dtype = static_cast<std::uint8_t>(row.meta() & 0xFF);
  out.role = static_cast<std::uint8_t>(row.role());
  out.is_scalar = batch.scalar ? 1 : 0;
  out.step = batch.step;
  out.time = batch.time;
  out.name = row.name();
  out.count = row.count();
  out.sum = row.sum();
  out.sumsq = row.sumsq();
  out.m2 = row.m2();
  out.abs_sum = row.abs_sum();
  out.min = row.min();
  out.max = row.max();
  out.nan = row.nan();
  out.posinf = row.posinf();
  out.neginf = row.neginf();
  out.zero = row.zero();
  out.negative = row.negative();
  out.world_size = batch.world_size;
  out.loss_scale = batch.scale_of(row);
  return out;
}

Verdict verdict_of(std::int32_t code) {
  switch (code) {
    case TOCSIN_RULE_OK:
      return kOk;
    case TOCSIN_RULE_HIT:
      return hit();
    case TOCSIN_RULE_INSUFFICIENT:
      return kInsufficient;
    case TOCSIN_RULE_NOT_APPLICABLE:
      return kNotApplicable;
    default:
      return {EvaluationOutcome::error, 0};
  }
}

}  // namespace

core::Result<Description> describe(const Library& library) {
  const core::Value& said = library.description;
  Description out;
  out.name = core::text_at(said, "name");
  if (out.name.empty()) return wrong(library, "name is missing");
  take_text(said, "version", out.version);
  const auto* bytes = core::as<std::int64_t>(core::find(said, "state_bytes"));
  if (bytes == nullptr || *bytes < 0 || static_cast<std::size_t>(*bytes) > kMostState) {
    return wrong(library, "state_bytes must be a number from 0 to " + std::to_string(kMostState));
  }
  out.state_bytes = static_cast<std::size_t>(*bytes);
  if (const auto* map = core::as<core::ValueMap>(core::find(said, "parameters"))) {
    out.parameters = *map;
  }
  for (const std::string& name : texts_at(said, "roles")) {
    const auto role = core::role_from(name);
    if (!role) return wrong(library, "there is no role " + name);
    out.roles.push_back(*role);
  }
  out.needs = texts_at(said, "needs");
  take_text(said, "observed", out.observed);
  take_text(said, "operator", out.op);
  take_text(said, "threshold", out.threshold);
  out.summary = "The condition of " + out.name + " holds for {name} at {place}.";
  take_text(said, "summary", out.summary);
  take_text(said, "recommendation", out.recommendation);
  return out;
}

core::Status NativeProgram::open(std::shared_ptr<const Library> library, Description description,
                                 const core::ValueMap& parameters) {
  library_ = std::move(library);
  description_ = std::move(description);
  own_bytes_ = (description_.state_bytes + 7) / 8 * 8;
  std::array<char, 512> error{};
  rule_ = library_->create(core::to_json(parameters).c_str(), error.data(), error.size());
  if (rule_ != nullptr) return core::ok();
  error.back() = '\0';
  return core::invalid_argument(error[0] != '\0' ? error.data() : "the library refuses them");
}

NativeProgram::~NativeProgram() {
  if (rule_ != nullptr) library_->destroy(rule_);
}

std::size_t NativeProgram::state_bytes() const noexcept { return own_bytes_ + sizeof(Last); }

void NativeProgram::init(std::byte* state) const {
  std::memset(state, 0, state_bytes());
  library_->init(rule_, state);
}

void NativeProgram::judge(const RowBatch& batch, std::span<const std::uint32_t> rows,
                          std::byte* states, const Life* lives, std::vector<RowHit>& noted,
                          EvaluationCounts& counts) const {
  for (const std::uint32_t i : rows) {
    const std::uint32_t slot = batch.slots[i];
    std::byte* state = states + slot * state_bytes();
    const tocsin_rule_row row = row_of(batch, Row(batch.columns, batch.rows, i));
    tocsin_rule_finding finding{};
    finding.size = sizeof finding;
    const std::int32_t code = library_->update(rule_, state, &row, &finding);
    const Verdict verdict = verdict_of(code);
    ++counts[static_cast<std::size_t>(verdict.outcome)];
    const bool tells =
        verdict.outcome == EvaluationOutcome::hit || verdict.outcome == EvaluationOutcome::error;
    if (tells) {
      const Last last{finding.observed, finding.threshold, code};
      std::memcpy(state + own_bytes_, &last, sizeof last);
    }
    if (tells || lives[slot].active()) {
      noted.push_back({slot, i, verdict});
    }
  }
}

Finding NativeProgram::explain(const std::byte* state, const Row* /*row*/,
                               const RowBatch* /*batch*/, const Subject& subject,
                               unsigned /*kind*/) const {
  Last last;
  std::memcpy(&last, state + own_bytes_, sizeof last);
  Finding out = Finding::that(description_.observed, last.observed);
  out.is(description_.op, description_.threshold, last.threshold);
  out.says(filled(description_.summary, subject, last));
  out.recommendation = description_.recommendation;
  return out;
}

double NativeProgram::badness(const std::byte* state, const Row* /*row*/) const {
  Last last;
  std::memcpy(&last, state + own_bytes_, sizeof last);
  return last.observed;
}

std::string NativeProgram::trouble(const std::byte* state) const {
  Last last;
  std::memcpy(&last, state + own_bytes_, sizeof last);
  return library_->path + " answered " + std::to_string(last.code);
}

}  // namespace tocsin::rules::native
