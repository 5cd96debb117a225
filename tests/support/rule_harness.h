// Drives the real rule engine with frames built by hand. Times and offsets are made up but
// deterministic: no clock, no files, no Kafka.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/frame.h"
#include "core/frame_body.h"
#include "ingest/ingest.h"
#include "rules/rules.h"

namespace tocsin::testing_support {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kStart = 1'767'323'045 * kSecond;

/// A frame that owns its bytes.
struct OwnedFrame {
  core::FrameHeader header;
  std::string body;
  [[nodiscard]] core::FrameView view() const {
    return {header, reinterpret_cast<const std::byte*>(body.data())};
  }
  /// The body as ingest gives it to the engine; of a lifecycle that is none: nothing.
  [[nodiscard]] core::FrameBody decoded() const;
};

/// One tensor with its values: the 14 columns are computed from them.
struct TensorValues {
  std::string name;
  std::vector<double> values;
  core::Role role = core::Role::gradient;
  std::uint64_t flags = 0;
  core::Dtype dtype = core::Dtype::f32;
};
core::SummaryRow summarize(const TensorValues& tensor);
/// A row whose only facts are its norm and mean magnitude.
core::SummaryRow row_of(std::string_view name, core::Role role, std::uint64_t count, double l2,
                        double abs_mean, std::uint64_t flags = 0);

/// One (stat, row, value) triple of a tag-1 extension.
struct Statistic {
  core::SparseStat stat;
  std::uint32_t row;
  double value;
};

/// A tag-2 extension of one row.
struct Vector {
  core::VectorStat stat;
  std::uint32_t row;
  std::vector<double> values;
  std::vector<double> parameters = {};
};

struct Entry {
  core::DictionaryType type = core::DictionaryType::tensor;
  std::string name;
  core::Role role = core::Role::other;
  core::Dtype dtype = core::Dtype::f32;
  std::vector<std::int64_t> shape = {};
  std::string attrs = {};
};

struct Scalar {
  std::string name;
  std::int64_t step = 0;
  double value = 0;
  core::Role role = core::Role::loss;
};

struct Sample {
  std::string series;
  std::int64_t time = 0;
  double ratio = 0;
};

/// Something that took time in a step.
struct Spent {
  std::string name;
  double seconds = 0;
  std::string track = "phase";
  double at = 0;  // seconds after the frame's time
};

/// One worker of one run: makes its frames in order, with sequence numbers and times.
class FakeWorker {
 public:
  explicit FakeWorker(std::string job = "digits", std::string run = "exploding",
                      std::uint32_t rank = 0, std::uint32_t world = 1);

  OwnedFrame start(std::string_view extra = {});
  OwnedFrame heartbeat(std::string_view extra = {});
  OwnedFrame end(std::string_view outcome = "completed", std::string_view error = "");
  OwnedFrame summary(core::Mode mode, std::int64_t step, const std::vector<core::SummaryRow>& rows,
                     const std::vector<Statistic>& statistics = {},
                     const std::vector<Vector>& vectors = {});
  OwnedFrame tensors(core::Mode mode, std::int64_t step, const std::vector<TensorValues>& tensors);
  OwnedFrame scalars(core::Mode mode, const std::vector<Scalar>& scalars);
  OwnedFrame step_end(core::Mode mode, std::int64_t step, std::uint64_t flags = 0);
  OwnedFrame dictionary(const std::vector<Entry>& entries);
  OwnedFrame system(const std::vector<Sample>& samples);
  OwnedFrame spans(core::Mode mode, std::int64_t step, const std::vector<Spent>& spans);

  core::FrameHeader header;  // what the next frame carries: attempt, incarnation, pass, time …
  std::int64_t step_time = kSecond / 10;

 private:
  /// Writes one frame of the product's own making, with `header` as it is then.
  OwnedFrame make(core::Mode mode, std::int64_t step,
                  const std::function<void(ingest::FrameWriter&)>& write);
  OwnedFrame lifecycle(const std::string& json);
};

/// An engine with the rules of a YAML text, fed frame by frame.
class RuleHarness {
 public:
  /// `rules`: the YAML list under `rules:`; wrong YAML fails the test.
  explicit RuleHarness(const std::string& rules, rules::EngineOptions options = {});
  RuleHarness(rules::RulesConfig rules, rules::EngineOptions options);
  /// One rule with its `with:` map in flow style, "{threshold: 3}".
  static RuleHarness of(const std::string& rule, const std::string& with = "{}",
                        const std::string& preset = "tocsin");

  RuleHarness& feed(const OwnedFrame& frame);
  /// A frame at a place of the input, as after a restart.
  RuleHarness& feed_at(const OwnedFrame& frame, std::int64_t offset);
  /// A label of the job that no event of the job says: of a JSON producer.
  void expect_label(std::string name) { known_labels_.insert(std::move(name)); }
  void tick(std::int64_t now, bool zero_lag = true);
  void end_of_input();

  /// Everything emitted so far, oldest first.
  const std::vector<rules::Event>& events();
  const std::vector<rules::StateRecord>& log();         // entries for rules-state so far
  const std::vector<rules::Comparison>& comparisons();  // for partitions elsewhere so far
  std::vector<core::Issue> issues();                    // all of them
  std::vector<core::Issue> firing();                    // first and repeated reports
  std::vector<core::Issue> resolved();
  std::vector<std::string> ids();                        // event ids of issues, sorted
  std::string rule_state(const std::string& rule = {});  // newest status; empty = none

  rules::Engine& engine() { return *engine_; }
  std::int64_t offset = 0;

 private:
  void check_labels(const rules::Event& event);
  static void check_title(const rules::Event& event);

  std::unique_ptr<rules::Engine> engine_;
  std::set<std::string, std::less<>> known_labels_{rules::issue_labels().begin(),
                                                   rules::issue_labels().end()};
  std::vector<rules::Event> events_;
  std::vector<rules::StateRecord> log_;
  std::vector<rules::Comparison> comparisons_;
};

/// A rule and one worker that goes from step to step.
struct SteppedJob {
  RuleHarness rule;
  FakeWorker worker = FakeWorker();
  core::Mode mode = core::Mode::train;
  std::int64_t step = 0;

  void end() { rule.feed(worker.step_end(mode, step++)); }
  /// Of the rule, when the run is over.
  std::string status() {
    rule.feed(worker.end());
    return rule.rule_state();
  }
};

/// The rules of a YAML list, or the errors as text.
struct ReadRules {
  rules::RulesConfig config;
  std::string errors;
};
ReadRules read_rules_text(const std::string& rules);

/// What the newest status of a rule (empty: of any) sums up, as JSON; "{}": nothing.
std::string summed_up(RuleHarness& harness, const std::string& rule = {});
/// All statuses that sum something up, oldest first.
struct SumUp {
  core::RuleState status;
  std::int64_t time;  // UTC ns
  std::string told;   // JSON
};
std::vector<SumUp> sums_of(RuleHarness& harness);

}  // namespace tocsin::testing_support
