#include "tests/support/rule_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace tocsin::testing_support {
core::FrameBody OwnedFrame::decoded() const {
  auto decoded = ingest::decode_body(view());
  return decoded ? std::move(*decoded) : core::FrameBody();
}

core::SummaryRow summarize(const TensorValues& tensor) {
  core::SummaryRow row;
  row.name = core::name_hash(tensor.name);
  row.count = tensor.values.size();
  row.meta = core::meta::make(tensor.dtype, tensor.role, tensor.flags);
  row.min = HUGE_VAL;
  row.max = -HUGE_VAL;
  for (const double x : tensor.values) {
    row.sum += x;
    row.sumsq += x * x;
    row.abs_sum += std::fabs(x);
    row.nan += std::isnan(x) ? 1 : 0;
    row.posinf += std::isinf(x) && x > 0 ? 1 : 0;
    row.neginf += std::isinf(x) && x < 0 ? 1 : 0;
    row.zero += x == 0 ? 1 : 0;
    row.negative += x < 0 ? 1 : 0;
    row.min = std::isnan(x) || std::isnan(row.min) ? std::nan("") : std::min(row.min, x);
    row.max = std::isnan(x) || std::isnan(row.max) ? std::nan("") : std::max(row.max, x);
  }
  const double mean = row.sum / static_cast<double>(row.count);
  for (const double x : tensor.values) row.m2 += (x - mean) * (x - mean);
  return row;
}

core::SummaryRow row_of(std::string_view name, core::Role role, std::uint64_t count, double l2,
                        double abs_mean, std::uint64_t flags) {
  core::SummaryRow row;
  row.name = core::name_hash(name);
  row.count = count;
  row.sumsq = l2 * l2;
  row.abs_sum = abs_mean * static_cast<double>(count);
  row.min = -abs_mean;
  row.max = abs_mean;
  row.meta = core::meta::make(core::Dtype::f32, role, flags);
  return row;
}

FakeWorker::FakeWorker(std::string job, std::string run, std::uint32_t rank, std::uint32_t world) {
  header.run = core::run_uid_for(job, run);
  header.rank = rank;
  header.world_size = world;
  header.worker = core::name_hash("worker_" + std::to_string(rank));
  header.incarnation = static_cast<std::uint64_t>(kStart);
  header.time = kStart;
}

OwnedFrame FakeWorker::make(core::Mode mode, std::int64_t step,
                            const std::function<void(ingest::FrameWriter&)>& write) {
  header.mode = mode;
  header.step = step;
  ++header.sequence;
  ingest::FrameWriter writer;
  write(writer);
  const auto bytes = writer.finish();
  EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
  OwnedFrame out;
  std::memcpy(&out.header, bytes->data(), sizeof out.header);
  out.header.flags = header.flags;  // also what no writer writes
  const std::span<const std::byte> body = bytes->subspan(sizeof out.header);
  out.body.assign(reinterpret_cast<const char*>(body.data()), body.size());
  return out;
}

OwnedFrame FakeWorker::lifecycle(const std::string& json) {
  return make(core::Mode::global, 0,
              [&](ingest::FrameWriter& writer) { writer.lifecycle(header, json); });
}

OwnedFrame FakeWorker::start(std::string_view extra) {
  return lifecycle(R"({"event":"start","job":"digits","pid":4711,"host":"here")" +
                   std::string(extra) + "}");
}

OwnedFrame FakeWorker::heartbeat(std::string_view extra) {
  return lifecycle(R"({"event":"heartbeat")" + std::string(extra) + "}");
}

OwnedFrame FakeWorker::end(std::string_view outcome, std::string_view error) {
  const std::string said = error.empty() ? R"(,"exit_code":0})"
                                         : R"(,"exit_code":1,"error":)" +
                                               core::to_json(core::Value(std::string(error))) + "}";
  return lifecycle(R"({"event":"end","outcome":")" + std::string(outcome) + "\"" + said);
}

OwnedFrame FakeWorker::summary(core::Mode mode, std::int64_t step,
                               const std::vector<core::SummaryRow>& rows,
                               const std::vector<Statistic>& statistics,
                               const std::vector<Vector>& vectors) {
  std::map<core::SparseStat, std::pair<std::vector<std::uint32_t>, std::vector<double>>> by_stat;
  for (const Statistic& one : statistics) {
    by_stat[one.stat].first.push_back(one.row);
    by_stat[one.stat].second.push_back(one.value);
  }
  return make(mode, step, [&](ingest::FrameWriter& writer) {
    writer.summary(header, rows);
    for (const auto& [stat, column] : by_stat) {
      writer.sparse_column(stat, {}, column.first, column.second);
    }
    for (const Vector& one : vectors) {
      writer.vector(static_cast<std::uint16_t>(one.stat), one.row, one.parameters, one.values);
    }
  });
}

OwnedFrame FakeWorker::tensors(core::Mode mode, std::int64_t step,
                               const std::vector<TensorValues>& tensors) {
  std::vector<core::SummaryRow> rows;
  rows.reserve(tensors.size());
  for (const TensorValues& tensor : tensors) rows.push_back(summarize(tensor));
  return summary(mode, step, rows);
}

OwnedFrame FakeWorker::scalars(core::Mode mode, const std::vector<Scalar>& scalars) {
  std::vector<core::ScalarRow> rows;
  rows.reserve(scalars.size());
  for (const Scalar& one : scalars) {
    rows.push_back({core::name_hash(one.name), one.step, header.global_step, header.time, one.value,
                    core::meta::make(core::Dtype::f64, one.role)});
  }
  return make(mode, scalars.empty() ? 0 : scalars.back().step,
              [&](ingest::FrameWriter& writer) { writer.scalars(header, rows); });
}

OwnedFrame FakeWorker::step_end(core::Mode mode, std::int64_t step, std::uint64_t flags) {
  ++header.global_step;
  header.time += step_time;
  const core::StepEndRow row{step, header.global_step, header.time - step_time, header.time, 1,
                             flags};
  return make(mode, step, [&](ingest::FrameWriter& writer) {
    writer.step_ends(header, {&row, 1});
  });
}

OwnedFrame FakeWorker::dictionary(const std::vector<Entry>& entries) {
  std::vector<core::DictionaryEntry> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) {
    names.push_back({core::name_hash(entry.name), entry.type, entry.dtype, entry.role,
                     std::as_bytes(std::span(entry.shape)), entry.name, entry.attrs});
  }
  return make(core::Mode::global, 0,
              [&](ingest::FrameWriter& writer) { writer.dictionary(header, names); });
}

OwnedFrame FakeWorker::system(const std::vector<Sample>& samples) {
  std::vector<core::SystemRow> rows;
  rows.reserve(samples.size());
  for (const Sample& one : samples) {
    rows.push_back({core::name_hash(one.series), one.time, one.ratio, 0});
  }
  return make(core::Mode::global, 0,
              [&](ingest::FrameWriter& writer) { writer.system(header, rows); });
}

OwnedFrame FakeWorker::spans(core::Mode mode, std::int64_t step, const std::vector<Spent>& spans) {
  std::vector<core::SpanRow> rows;
  rows.reserve(spans.size());
  const auto nanoseconds = [](double seconds) {
    return static_cast<std::int64_t>(std::llround(seconds * static_cast<double>(kSecond)));
  };
  for (const Spent& one : spans) {
    rows.push_back({core::name_hash(one.name), core::name_hash(one.track),
                    header.time + nanoseconds(one.at), nanoseconds(one.seconds), step, 0, 0});
  }
  return make(mode, step, [&](ingest::FrameWriter& writer) { writer.spans(header, rows); });
}

ReadRules read_rules_text(const std::string& rules) {
  ReadRules out;
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document =
      config::Document::parse("rules:\n" + rules + "\n", "test.yaml", nothing, diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) { rules::read_rules(root, out.config); });
  }
  for (const config::Diagnostic& one : diagnostics.items()) {
    out.errors += config::to_text(one) + "\n";
  }
  return out;
}

RuleHarness::RuleHarness(const std::string& rules, rules::EngineOptions options) {
  ReadRules read = read_rules_text(rules);
  EXPECT_EQ(read.errors, "");
  auto engine = rules::Engine::create(std::move(read.config), std::move(options));
  EXPECT_TRUE(engine.has_value());
  engine_ = std::move(*engine);
}

RuleHarness::RuleHarness(rules::RulesConfig rules, rules::EngineOptions options) {
  auto engine = rules::Engine::create(std::move(rules), std::move(options));
  EXPECT_TRUE(engine.has_value());
  engine_ = std::move(*engine);
}

RuleHarness RuleHarness::of(const std::string& rule, const std::string& with,
                            const std::string& preset) {
  return RuleHarness("  - {use: " + rule + ", preset: " + preset + ", with: " + with + "}");
}

RuleHarness& RuleHarness::feed(const OwnedFrame& frame) { return feed_at(frame, offset++); }

RuleHarness& RuleHarness::feed_at(const OwnedFrame& frame, std::int64_t at) {
  const core::WallTime time = core::wall_time(frame.header.time);
  const rules::RecordRef ref{"tocsin.telemetry.v1", "telemetry", 3, at, time};
  if (const auto body = ingest::decode_body(frame.view())) {
    engine_->on_frame(frame.view(), *body, ref, time);
  } else {
    engine_->skip(ref);
  }
  return *this;
}

void RuleHarness::tick(std::int64_t now, bool zero_lag) {
  engine_->tick(core::wall_time(now), [&](std::int32_t) { return zero_lag; });
}

void RuleHarness::end_of_input() { engine_->end_of_input(); }

// Whatever rule is tested: `tocsin check` takes other labels for misspelt.
void RuleHarness::check_labels(const rules::Event& event) {
  if (const auto* job = std::get_if<core::JobEvent>(&event)) {
    for (const auto& [name, value] : job->labels.entries()) known_labels_.insert(name);
  }
  const auto* issue = std::get_if<core::Issue>(&event);
  if (issue == nullptr) return;
  for (const auto& [name, value] : issue->labels.entries()) {
    if (!known_labels_.contains(name)) {
      ADD_FAILURE() << issue->rule << " has the label " << name << ", unknown to issue_labels()";
    }
  }
}

// Whatever rule is tested: what a built-in one finds has a few words for the subject of a message, with
// a verb that messages can put into the past, and without what they say themselves.
void RuleHarness::check_title(const rules::Event& event) {
  const auto* issue = std::get_if<core::Issue>(&event);
  if (issue == nullptr || issue->status != core::IssueStatus::firing) return;
  const auto rules = rules::builtin_rules();
  const bool built_in = std::any_of(rules.begin(), rules.end(),
                                    [&](const auto& one) { return one.name == issue->rule_type; });
  if (!built_in) return;
  const auto found = std::find_if(issue->annotations.begin(), issue->annotations.end(),
                                  [](const auto& one) { return one.first == "title"; });
  if (found == issue->annotations.end()) {
    ADD_FAILURE() << issue->rule << " has no title: " << issue->summary;
    return;
  }
  const std::string& title = found->second;
  const auto has = [&](std::string_view text) { return title.find(text) != std::string::npos; };
  const bool verb = has(" is ") || has(" are ") || has(" has ") || has(" have ") ||
                    has(" does not ") || has(" do not ");
  if (!verb || has("  ") || has(" step ") || title.front() == ' ' || title.back() == '.') {
    ADD_FAILURE() << issue->rule << " has the title \"" << title << "\"";
  }
}

const std::vector<rules::Event>& RuleHarness::events() {
  rules::Output output = engine_->take(3);
  for (rules::Event& event : output.events) {
    check_labels(event);
    check_title(event);
    events_.push_back(std::move(event));
  }
  for (rules::StateRecord& record : output.log) log_.push_back(std::move(record));
  for (rules::Comparison& one : output.comparisons) comparisons_.push_back(std::move(one));
  return events_;
}

const std::vector<rules::Comparison>& RuleHarness::comparisons() {
  events();
  return comparisons_;
}

const std::vector<rules::StateRecord>& RuleHarness::log() {
  events();
  return log_;
}

std::vector<core::Issue> RuleHarness::issues() {
  std::vector<core::Issue> out;
  for (const rules::Event& event : events()) {
    if (const auto* issue = std::get_if<core::Issue>(&event)) out.push_back(*issue);
  }
  return out;
}

std::vector<core::Issue> RuleHarness::firing() {
  std::vector<core::Issue> out = issues();
  std::erase_if(out,
                [](const core::Issue& one) { return one.status != core::IssueStatus::firing; });
  return out;
}

std::vector<core::Issue> RuleHarness::resolved() {
  std::vector<core::Issue> out = issues();
  std::erase_if(out,
                [](const core::Issue& one) { return one.status == core::IssueStatus::firing; });
  return out;
}

std::vector<std::string> RuleHarness::ids() {
  std::vector<std::string> out;
  for (const core::Issue& issue : issues()) out.push_back(issue.event_id);
  std::sort(out.begin(), out.end());
  return out;
}

std::string RuleHarness::rule_state(const std::string& rule) {
  std::string state;
  for (const rules::Event& event : events()) {
    const auto* status = std::get_if<core::RuleStatusEvent>(&event);
    if (status != nullptr && (rule.empty() || status->rule == rule)) {
      state = core::to_string(status->status);
    }
  }
  return state;
}

std::string summed_up(RuleHarness& harness, const std::string& rule) {
  core::ValueMap summary;
  for (const rules::Event& event : harness.events()) {
    const auto* status = std::get_if<core::RuleStatusEvent>(&event);
    if (status != nullptr && (rule.empty() || status->rule == rule)) summary = status->summary;
  }
  return core::to_json(summary);
}

std::vector<SumUp> sums_of(RuleHarness& harness) {
  std::vector<SumUp> out;
  for (const rules::Event& event : harness.events()) {
    const auto* status = std::get_if<core::RuleStatusEvent>(&event);
    if (status == nullptr || status->summary.empty()) continue;
    out.push_back(
        {status->status, core::nanoseconds(status->time), core::to_json(status->summary)});
  }
  return out;
}

}  // namespace tocsin::testing_support
