// Door of rules: configured rules, and the engine that turns telemetry frames into issues.
//
// The engine takes values and returns values: no clock, no thread, no I/O, no randomness. One
// engine per engine thread; the runs of every source partition that the thread owns live in it, and
// leave with their partition. The same records in any order that keeps each worker's order give the
// same issues with the same ids (docs/launches.md, docs/wire.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"
#include "core/command.h"
#include "core/frame.h"
#include "core/frame_body.h"
#include "core/function_ref.h"
#include "core/issue.h"
#include "core/own_issue.h"
#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "rules/contract/stats.h"
#include "rules/contract/step_host.h"

namespace tocsin::rules {

/// Which thresholds and conditions a rule starts from: ours, or exactly those of
/// the original (docs/rules/README.md). Parameters that a user gives win over either.
enum class Preset { tocsin, original };

/// A rule with its parameters; immutable and shared. Opaque outside this room.
class Program;

/// Groups that a built-in rule is in (`rule_groups:`). A rule that needs no selection of the user's is in one
/// at least; for the others nobody can choose.
namespace group {
inline constexpr std::uint32_t kDefault = 1;   // any training: quiet on healthy runs of any
                                               // framework, worth attention when it speaks
inline constexpr std::uint32_t kPyTorch = 2;   // tensors and losses of deep learning
inline constexpr std::uint32_t kXGBoost = 4;   // boosted trees
inline constexpr std::uint32_t kProfiler = 8;  // system metrics, step times and phases
}  // namespace group

/// One built-in rule: what lists, schemas, docs and the configuration reader need to know.
struct RuleDescriptor {
  std::string_view name;                // "exploding_tensor"
  std::string_view original_name = {};  // "ExplodingTensor"; empty: a rule of our own
  std::string_view title;               // one sentence: what it finds
  std::string_view unit;                // "tensor", "series", "clock", "node"
  std::string_view needs;               // what must be captured, in words
  std::string_view presets = {};        // how the two presets differ and why; empty = alike
  core::Severity severity = core::Severity::warning;  // of the default preset
  std::vector<std::string_view> aliases = {};
  std::span<const std::string_view> metrics = {};  // of the node that it judges, by name
  /// Rises when points, units or ids of the rule change; part of its issues' ids.
  std::string_view version = "1";
  std::uint32_t groups = 0;  // group::…
  /// Declares every parameter of `with:` and returns the configured rule. In the describing pass
  /// the result is not to be used. Never null.
  std::shared_ptr<const Program> (*read)(config::Reader& in, Preset preset) = nullptr;
};

/// All built-in rules, in the order of rules/CMakeLists.txt.
std::span<const RuleDescriptor> builtin_rules();
/// By name, original name or alias; letter case and underscores do not matter. nullptr = unknown.
const RuleDescriptor* find_rule(std::string_view name);

/// What the engine tells of without a rule of the user's (rules/engine/partition/operational.cc).
std::span<const core::OwnIssue> own_issues() noexcept;
/// Every label that an issue of the engine may have, beside those of jobs and of the configuration.
std::span<const std::string_view> issue_labels() noexcept;

/// One item of `rules:`, checked.
struct RuleSettings {
  std::string name;  // the YAML name, default the type
  std::string type;  // RuleDescriptor::name
  std::string version = "1";
  Preset preset = Preset::tocsin;
  core::Severity severity = core::Severity::warning;
  bool severity_set = false;  // by the user: then it also replaces severities of single kinds
  bool shadow = false;
  std::vector<std::string> actions;  // receivers: shorthand for a route of this rule's own
  std::string runbook_url;
  std::vector<core::Parameter> parameters;  // effective, with origin
  std::string params_hash;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const HostedRule> hosted;  // judged by a process of its own; null: here
};

struct RulesConfig {
  std::vector<RuleSettings> rules;
  /// Judged by other engines: jobs name them, and what they need is asked for with the rest.
  std::vector<RuleSettings> elsewhere = {};
};

/// Section `engine`.
struct EngineConfig {
  std::uint32_t threads = 0;  // 0 = cores − 1, at least 1
  core::Duration commit_interval = std::chrono::seconds(1);
  core::Duration snapshot_interval = std::chrono::seconds(30);
  core::Duration join_grace = std::chrono::seconds(10);
  core::Duration idle_after = std::chrono::seconds(30);
  core::Duration forget_after = std::chrono::hours(24);
  core::Duration lost_after = std::chrono::minutes(2);
  core::Duration max_clock_skew = std::chrono::minutes(5);
  std::uint32_t max_open_units = 20;
  std::uint32_t max_units_per_run = 1U << 20;
  std::uint32_t max_runs = 10000;
  std::string delivery = "exactly_once";  // | at_least_once
};

/// Reads key `rules` of the root map. A bare text stands for {use: text}. Rule names must differ.
void read_rules(config::Reader& root, RulesConfig& out);
/// Adds the rules that come with others (profiler_report), except where there is one of that name
/// already; returns those of these that were to have parameters: nobody knows which count.
std::vector<std::string> complete(RulesConfig& rules);
/// Reads section `engine` of the root map.
void read_engine(config::Reader& root, EngineConfig& out);
/// A rule as it is without any parameter of the user's: for tests and `rules describe`.
core::Result<RuleSettings> make_rule(std::string_view use, Preset preset = Preset::tocsin);

/// Where the frame being handed in was read.
struct RecordRef {
  std::string_view topic;   // as it shall appear in data_refs: "tocsin.telemetry.v1"
  std::string_view stream;  // core::StreamPartition::stream
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  core::WallTime timestamp{};  // of the record: when it was appended
};

/// A record for the compacted topic `rules-state`, partition as given (one partition on the
/// journal). The value is opaque, its first four bytes are its version; nullopt is a tombstone.
struct StateRecord {
  std::int32_t partition = 0;
  std::string key;
  std::optional<std::string> value;
};

/// A record of the compacted topic `comparisons`: what a rule keeps of the run with which it compares
/// all others, for partitions that do not read that run. The value is opaque; nullopt is a tombstone.
struct Comparison {
  std::string key;
  std::optional<std::string> value;
};

using Event = std::variant<core::Issue, core::RuleStatusEvent, core::JobEvent, core::Command>;

/// What one partition decided since its last take(), oldest first.
struct Output {
  std::vector<Event> events;
  std::vector<StateRecord> log;  // non-deterministic entries: same transaction as the events
  std::vector<Comparison> comparisons = {};
  [[nodiscard]] bool empty() const noexcept {
    return events.empty() && log.empty() && comparisons.empty();
  }
};

/// What finish_restore() found.
struct Restored {
  /// Where to read on from; streams that are not named are read from their beginning. nullopt:
  /// there was no state, and what was committed is the place to start. A state with no positions
  /// in it is a state: it stands before the first record.
  std::optional<std::vector<core::Position>> positions;
};

struct EngineOptions {
  std::string cluster;                                           // label; empty = none
  std::vector<std::pair<std::string, std::string>> labels = {};  // added to every issue
  EngineConfig config = {};
  /// Clock rules, idle workers and grace periods follow the records' timestamps: for replays of a
  /// recording, where nobody calls tick().
  bool record_time = false;
  /// Runs may lie in partitions that other engines hold: rules that compare them say what they keep
  /// of the other run (Output::comparisons, learn()).
  bool shares_comparisons = false;
  /// Who asks hooks for what the rules need, in the slot `capture/<asker>`; empty: the engine of a
  /// cluster, in the slot `capture`.
  std::string asker = {};
  /// Asked by hosted rules; null: they end in the status `Error`.
  std::shared_ptr<StepHost> host = nullptr;
};

/// Lives on one engine thread. Calls in any order; nothing borrowed is kept after a call returns.
class Engine {
 public:
  /// invalid_argument: two rules of one name.
  static core::Result<std::unique_ptr<Engine>> create(RulesConfig rules, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// One validated frame of topic telemetry with its decoded body, in the order of its stream. An
  /// offset that was already handled is dropped. Total: any content, also NaN and negative steps.
  /// `arrival`: now, and while replaying the record's time.
  void on_frame(const core::FrameView& frame, const core::FrameBody& body, const RecordRef& ref,
                core::WallTime arrival);
  /// A record that holds no frame (JSON error, foreign): only moves the position.
  void skip(const RecordRef& ref);
  /// Call at least every second. `live`: the newest record of that partition, or its end, was seen
  /// within the last seconds; without it silence proves nothing there and no clock rule judges.
  void tick(core::WallTime now, core::FunctionRef<bool(std::int32_t partition)> live);
  /// The recording is over: judges what waits for a later record. For replays only.
  void end_of_input();

  /// Goes on with other rules, as a logged entry: rules of the same name, type and parameters keep
  /// their memory, issues of removed and changed ones are resolved (`superseded`), new ones start
  /// with the next record. invalid_argument as create(): then nothing has changed.
  core::Status reload(RulesConfig rules, core::WallTime now);

  /// Whether learn() would be of use: a run of this live partition is compared with another one, or with
  /// its family. 0: no. When the number changes, records from the beginning of the topic may be of use.
  [[nodiscard]] std::uint64_t compares(std::int32_t partition) const;
  /// A record of `comparisons`, in the order of its topic. What the partition does not know yet is a
  /// logged entry; whatever its own records say of that run wins.
  void learn(std::int32_t partition, const Comparison& record, core::WallTime now);

  /// Runs of this live partition of which a further shard lies here: what the engine of their first
  /// shard says of them (topic `registry`) is for settle().
  [[nodiscard]] std::vector<core::RunUid> further_shards(std::int32_t partition) const;
  /// The newest such event of one of these runs. Call it again while it stands: an end counts when the
  /// shard has nothing more to say. What is new becomes a logged entry. `live`: as in tick().
  void settle(std::int32_t partition, const core::JobEvent& event, core::WallTime now, bool live);

  /// Takes everything that this partition decided so far.
  Output take(std::int32_t partition);
  /// Partitions for which take() would give something.
  [[nodiscard]] std::vector<std::int32_t> pending() const;

  /// Writes about `budget` bytes of a snapshot of the partition: what changed since the last one,
  /// as it was at the first call, and last the record that makes it valid. Returns whether more is
  /// due: call again in the next turn, until false. Asks for an empty take(): what was decided
  /// before the snapshot began must not be committed after its last record. Nothing while silent.
  bool snapshot(std::int32_t partition, std::size_t budget,
                core::FunctionRef<void(StateRecord)> emit);
  /// One record of `rules-state`, in log order; later ones of a key replace earlier ones.
  core::Status restore(std::int32_t partition, std::string_view key,
                       std::optional<std::string_view> value);
  /// Builds the partition's runs from what restore() got and makes the partition silent: state
  /// changes, but nothing is emitted or logged, and tick() leaves it alone. Seek to the positions
  /// returned, hand in frames up to the committed positions, then go_live(). data_loss: a record is
  /// damaged, missing, or of an unknown version or layout; the partition then starts empty at
  /// `committed` and is marked incomplete.
  core::Result<Restored> finish_restore(std::int32_t partition,
                                        std::span<const core::Position> committed);
  /// Everything committed has been handled again: from here on output counts. Times in the state
  /// that lie behind `now` (a clock stepped back) are brought to it.
  void go_live(std::int32_t partition, core::WallTime now);
  /// Forgets a partition that is not ours any more. Its undelivered output goes with it.
  void drop(std::int32_t partition);

  /// The input of this partition no longer reaches back to the state: every issue of its runs says
  /// so from now on (label-free, in `values.state_incomplete`).
  void mark_incomplete(std::int32_t partition, std::string_view why);

  [[nodiscard]] EngineStats stats() const;

  struct Impl;  // defined inside the room only

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::rules
