#include "tests/support/rule_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ingest/ingest.h"

namespace tocsin::testing_support {
namespace {

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void pad(std::string& out) {
  while (out.size() % 8 != 0) out += '\0';
}

}  // namespace

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

OwnedFrame FakeWorker::make(core::FrameKind kind, core::Mode mode, std::int64_t step,
                            std::uint32_t rows, std::uint16_t columns, std::string body) {
  header.kind = kind;
  header.mode = mode;
  header.step = step;
  header.row_count = rows;
  header.row_stride = static_cast<std::uint16_t>(columns * core::kColumnBytes);
  header.body_length = static_cast<std::uint32_t>(body.size());
  ++header.sequence;
  return {header, std::move(body)};
}

OwnedFrame FakeWorker::start(std::string_view extra) {
  std::string body = R"({"event":"start","job":"digits","pid":4711,"host":"here")";
  body += extra;
  body += "}";
  return make(core::FrameKind::lifecycle, core::Mode::global, 0, 1, 0, body);
}

OwnedFrame FakeWorker::heartbeat() {
  return make(core::FrameKind::lifecycle, core::Mode::global, 0, 1, 0, R"({"event":"heartbeat"})");
}

OwnedFrame FakeWorker::end(std::string_view outcome) {
  return make(core::FrameKind::lifecycle, core::Mode::global, 0, 1, 0,
              R"({"event":"end","outcome":")" + std::string(outcome) + R"(","exit_code":0})");
}

OwnedFrame FakeWorker::summary(core::Mode mode, std::int64_t step,
                               const std::vector<core::SummaryRow>& rows,
                               const std::vector<Statistic>& statistics) {
  std::string body;
  for (std::size_t k = 0; k < core::summary_column::columns; ++k) {
    for (const core::SummaryRow& row : rows) {
      body.append(reinterpret_cast<const char*>(&row) + k * core::kColumnBytes, core::kColumnBytes);
    }
  }
  std::map<core::SparseStat, std::vector<Statistic>> by_stat;
  for (const Statistic& one : statistics) by_stat[one.stat].push_back(one);
  for (const auto& [stat, values] : by_stat) {
    std::string payload;
    append(payload, static_cast<std::uint16_t>(stat));
    append(payload, std::uint16_t{0});
    append(payload, static_cast<std::uint32_t>(values.size()));
    for (const Statistic& one : values) append(payload, one.row);
    pad(payload);
    for (const Statistic& one : values) append(payload, one.value);
    append(body, std::uint16_t{1});
    append(body, std::uint16_t{0});
    append(body, static_cast<std::uint32_t>(payload.size()));
    body += payload;
    pad(body);
  }
  return make(core::FrameKind::summary, mode, step, static_cast<std::uint32_t>(rows.size()),
              core::summary_column::columns, std::move(body));
}

OwnedFrame FakeWorker::tensors(core::Mode mode, std::int64_t step,
                               const std::vector<TensorValues>& tensors) {
  std::vector<core::SummaryRow> rows;
  for (const TensorValues& tensor : tensors) rows.push_back(summarize(tensor));
  return summary(mode, step, rows);
}

OwnedFrame FakeWorker::scalars(core::Mode mode, const std::vector<Scalar>& scalars) {
  std::string body;
  for (const Scalar& one : scalars) append(body, core::name_hash(one.name));
  for (const Scalar& one : scalars) append(body, one.step);
  for (std::size_t i = 0; i < scalars.size(); ++i) append(body, header.global_step);
  for (std::size_t i = 0; i < scalars.size(); ++i) append(body, header.time);
  for (const Scalar& one : scalars) append(body, one.value);
  for (const Scalar& one : scalars) append(body, core::meta::make(core::Dtype::f64, one.role));
  return make(core::FrameKind::scalar, mode, scalars.empty() ? 0 : scalars.back().step,
              static_cast<std::uint32_t>(scalars.size()), core::scalar_column::columns,
              std::move(body));
}

OwnedFrame FakeWorker::step_end(core::Mode mode, std::int64_t step) {
  ++header.global_step;
  header.time += step_time;
  std::string body;
  append(body, step);
  append(body, header.global_step);
  append(body, header.time - step_time);
  append(body, header.time);
  append(body, std::uint64_t{1});
  append(body, std::uint64_t{0});
  return make(core::FrameKind::step_end, mode, step, 1, core::step_end_column::columns,
              std::move(body));
}

OwnedFrame FakeWorker::dictionary(const std::vector<Entry>& entries) {
  std::string body;
  for (const Entry& entry : entries) {
    append(body, core::name_hash(entry.name));
    append(body, static_cast<std::uint8_t>(entry.type));
    append(body, static_cast<std::uint8_t>(entry.dtype));
    append(body, static_cast<std::uint8_t>(entry.role));
    append(body, static_cast<std::uint8_t>(entry.shape.size()));
    append(body, static_cast<std::uint32_t>(entry.name.size()));
    append(body, static_cast<std::uint32_t>(entry.attrs.size()));
    append(body, std::uint32_t{0});
    for (const std::int64_t length : entry.shape) append(body, length);
    body += entry.name + entry.attrs;
    pad(body);
  }
  return make(core::FrameKind::dictionary, core::Mode::global, 0,
              static_cast<std::uint32_t>(entries.size()), 0, std::move(body));
}

OwnedFrame FakeWorker::system(const std::vector<Sample>& samples) {
  std::string body;
  for (const Sample& one : samples) append(body, core::name_hash(one.series));
  for (const Sample& one : samples) append(body, one.time);
  for (const Sample& one : samples) append(body, one.ratio);
  for (std::size_t i = 0; i < samples.size(); ++i) append(body, std::uint64_t{0});
  return make(core::FrameKind::system, core::Mode::global, 0,
              static_cast<std::uint32_t>(samples.size()), core::system_column::columns,
              std::move(body));
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

const std::vector<rules::Event>& RuleHarness::events() {
  rules::Output output = engine_->take(3);
  for (rules::Event& event : output.events) events_.push_back(std::move(event));
  for (rules::StateRecord& record : output.log) log_.push_back(std::move(record));
  return events_;
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

}  // namespace tocsin::testing_support
