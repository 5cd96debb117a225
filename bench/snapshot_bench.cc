// Snapshots at size: 50 rules over many tensors, as the evaluate stage writes them with the settings
// that ship, while frames go on coming. How long does evaluation stand still, how large is a state in
// memory and in a snapshot, how large is a commit, and how soon is a process live that is assigned them?
// Baseline: the same frames while no snapshot is under way.
// Run: snapshot_bench [tensors]   (default 20 000, which makes a million states)
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "app/stages/evaluate.h"
#include "bench/bench_report.h"
#include "config/config.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kRules = 50;
constexpr std::size_t kRowsPerFrame = 2000;
constexpr std::int64_t kStart = 1'767'323'045'000'000'000;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

rules::RulesConfig read_rules(const std::string& yaml);

/// Rules that keep the last eight steps of every tensor.
rules::RulesConfig windows_of_eight(std::size_t rules) {
  std::string yaml = "rules:\n";
  for (std::size_t i = 0; i < rules; ++i) {
    yaml += "  - {name: window_" + std::to_string(i) +
            ", select: 'tensor(\".*\")', window: last 8 steps, when: 'mean(l2) > 1e9'}\n";
  }
  return read_rules(yaml);
}

/// Instances of the rules that judge tensors, no two with the same parameters.
rules::RulesConfig fifty_rules() {
  std::string yaml = "rules:\n";
  for (std::size_t i = 0; i < kRules; ++i) {
    const std::string number = std::to_string(i + 1);
    const std::string name = "  - {name: rule_" + number + ", ";
    switch (i % 4) {
      case 0:
        yaml += name + "use: exploding_tensor, with: {clear_after: " + number + "}}\n";
        break;
      case 1:
        yaml += name + "use: vanishing_gradient, with: {threshold: 1.0e-" + number + "}}\n";
        break;
      case 2:
        yaml += name + "use: all_zero, with: {tensor_regex: ['.*'], threshold: " + number + "}}\n";
        break;
      default:
        yaml +=
            name + "use: exploding_tensor, with: {only_nan: true, clear_after: " + number + "}}\n";
        break;
    }
  }
  return read_rules(yaml);
}

rules::RulesConfig read_rules(const std::string& yaml) {
  rules::RulesConfig out;
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document = config::Document::parse(yaml, "bench.yaml", nothing, diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) { rules::read_rules(root, out); });
  }
  for (const auto& one : diagnostics.items()) {
    std::fprintf(stderr, "%s\n", config::to_text(one).c_str());
  }
  if (!diagnostics.items().empty()) std::exit(2);
  return out;
}

/// One rank that sends `tensors` gradients per step, in frames of a size that a hook sends.
class Rank {
 public:
  explicit Rank(std::size_t tensors) : tensors_(tensors) {
    header_.run = core::run_uid_for("bench", "snapshot");
    header_.world_size = 1;
    header_.mode = core::Mode::train;
    header_.worker = core::name_hash("worker_0");
    header_.incarnation = 1;
  }
  /// The next frame's bytes; valid until the next call.
  std::span<const std::byte> next() {
    rows_.clear();
    if (names_.size() < tensors_) {
      const std::size_t until = std::min(names_.size() + kRowsPerFrame, tensors_);
      std::vector<core::DictionaryEntry> entries;
      std::deque<std::string> texts;  // borrowed by the entries
      for (std::size_t i = names_.size(); i < until; ++i) {
        core::DictionaryEntry entry;
        entry.name = texts.emplace_back("gradient/layer" + std::to_string(i) + ".weight");
        entry.hash = core::name_hash(entry.name);
        entry.type = core::DictionaryType::tensor;
        entry.role = core::Role::gradient;
        entry.dtype = core::Dtype::f32;
        names_.push_back(entry.hash);
        entries.push_back(entry);
      }
      writer_.dictionary(counted(), entries);
      return *writer_.finish();
    }
    if (at_ == tensors_) {
      at_ = 0;
      ++header_.step;
      ++header_.global_step;
    }
    const std::size_t until = std::min(at_ + kRowsPerFrame, tensors_);
    for (; at_ < until; ++at_) {
      core::SummaryRow row;
      row.name = names_[at_];
      row.count = 4096;
      row.abs_sum = 40.96;
      row.sumsq = row.m2 = 4.1;
      row.min = -0.1;
      row.max = 0.1;
      row.meta = core::meta::make(core::Dtype::f32, core::Role::gradient);
      rows_.push_back(row);
    }
    writer_.summary(counted(), rows_);
    return *writer_.finish();
  }
  [[nodiscard]] bool at_step_start() const { return names_.size() == tensors_ && at_ == tensors_; }

 private:
  const core::FrameHeader& counted() {
    ++header_.sequence;
    header_.time = kStart + static_cast<std::int64_t>(header_.sequence) * 1'000'000;
    return header_;
  }

  std::size_t tensors_;
  std::size_t at_ = 0;
  core::FrameHeader header_;
  std::vector<std::uint64_t> names_;
  std::vector<core::SummaryRow> rows_;
  ingest::FrameWriter writer_;
};

/// What the stage's loop sees.
struct Seen {
  double longest_take = 0, longest_frame = 0, longest_quiet_frame = 0;  // ms
  std::size_t largest_commit = 0, bytes = 0, commits = 0;
};

class Loop {
 public:
  Loop(std::size_t tensors, const rules::RulesConfig& rules)
      : rules_(rules),
        rank_(tensors),
        stage_(options(), log_, telemetry_),
        now_{core::wall_time(kStart), 1h} {
    must(stage_.open(now_).has_value());
    const core::Position never{{"telemetry", 0}, -1};
    must(stage_.restored(0, {&never, 1}, now_).has_value());
    stage_.started(0, now_);
  }

  /// One frame in, and what is to be written out; returns the bytes of a snapshot's piece.
  std::size_t turn(Seen& seen, bool quiet) {
    const auto bytes = rank_.next();
    core::RecordView view;
    view.topic = view.stream = "telemetry";
    view.offset = offset_++;
    view.timestamp = core::nanoseconds(now_.wall);
    view.value = bytes;
    auto begin = Clock::now();
    must(!stage_.handle(view, {now_, false}));
    auto& longest = quiet ? seen.longest_quiet_frame : seen.longest_frame;
    longest = std::max(longest, milliseconds_since(begin));
    now_.wall += 1ms;
    now_.steady += 1ms;
    begin = Clock::now();
    const app::StageOutput out = stage_.take(now_);
    if (!quiet) seen.longest_take = std::max(seen.longest_take, milliseconds_since(begin));
    std::size_t size = 0;
    for (const auto& one : out.records) {
      size += one.record.key.size() + one.record.value.value_or("").size();
      if (one.record.topic != core::topic::kRulesState) continue;
      if (one.record.value) {
        kept_[one.record.key] = *one.record.value;
      } else {
        kept_.erase(one.record.key);
      }
    }
    stage_.committing();
    stage_.committed(now_);
    return size;
  }

  /// Frames until a snapshot that is due by now is written.
  void snapshot(Seen& seen) {
    bool begun = false;
    for (;;) {
      const std::size_t size = turn(seen, false);
      if (size == 0 && begun) return;
      if (size == 0) continue;
      begun = true;
      seen.bytes += size;
      ++seen.commits;
      seen.largest_commit = std::max(seen.largest_commit, size);
    }
  }
  /// States that rules keep: one per rule and tensor it has judged.
  double states() {
    const auto stats = stage_.engine()->stats();
    return static_cast<double>(stats.units) * static_cast<double>(rules_.rules.size());
  }
  void wait_for_next() { now_.steady += rules::EngineConfig().snapshot_interval; }

  /// CPU seconds of another process's stage from its assignment until it is live, given the state topic as
  /// it stands; the reading of it is not counted.
  double take_over() {
    app::EvaluateStage other(options(), log_, telemetry_);
    must(other.open(now_).has_value());
    const std::clock_t begin = std::clock();
    for (const auto& [key, value] : kept_) {
      core::RecordView view;
      view.topic = view.stream = core::topic::kRulesState;
      view.key = key;
      view.value = std::as_bytes(std::span(value.data(), value.size()));
      must(other.restore(0, view).has_value());
    }
    const core::Position committed{{"telemetry", 0}, offset_};
    must(other.restored(0, {&committed, 1}, now_).has_value());
    other.started(0, now_);
    const std::clock_t end = std::clock();
    must(other.engine()->stats().units == stage_.engine()->stats().units);
    return static_cast<double>(end - begin) / CLOCKS_PER_SEC;
  }

 private:
  static void must(bool ok) {
    if (!ok) std::abort();
  }
  [[nodiscard]] app::EvaluateOptions options() const {
    app::EvaluateOptions out;
    out.rules = rules_;
    return out;
  }

  rules::RulesConfig rules_;
  Rank rank_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  app::EvaluateStage stage_;
  app::Instant now_;
  std::int64_t offset_ = 0;
  std::map<std::string, std::string> kept_;  // the state topic, compacted
};

/// Bytes that the program has taken of its heap.
double heap() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

/// Heap bytes per tensor of so many rules that keep eight steps of it: with its name, its unit, everything.
double window_bytes(std::size_t rules) {
  constexpr std::size_t kTensors = 100'000;
  const double empty = heap();
  Loop loop(kTensors, windows_of_eight(rules));
  Seen ignored;
  for (std::size_t i = 0; i < 12 * kTensors / kRowsPerFrame; ++i) loop.turn(ignored, true);
  return (heap() - empty) / static_cast<double>(kTensors);
}

bool run(std::size_t tensors) {
  constexpr std::size_t kWindows = 5;
  const double one_window = window_bytes(1);
  bench::figure("memory per tensor with one rule of 8 steps, name included", one_window, "bytes");
  const double further = (window_bytes(kWindows) - one_window) / static_cast<double>(kWindows - 1);
  const double empty = heap();
  Loop loop(tensors, fifty_rules());
  Seen ignored;
  const std::size_t frames = (tensors + kRowsPerFrame - 1) / kRowsPerFrame;
  // Names and two steps: everything that will ever be there is there.
  for (std::size_t i = 0; i < 3 * frames; ++i) loop.turn(ignored, true);
  const double states = loop.states();
  const double each = (heap() - empty) / states;
  loop.wait_for_next();
  Seen whole;
  loop.snapshot(whole);
  Seen quiet;
  for (std::size_t i = 0; i < 2 * frames; ++i) loop.turn(quiet, true);
  // Once more: only what has changed since, which is everything.
  loop.wait_for_next();
  Seen again;
  loop.snapshot(again);
  const double live = loop.take_over();
  std::printf("%zu tensors, %zu rules: %.3g states\n", tensors, kRules, states);
  bool met = true;
  const auto judged = [&](const std::string& name, double value, const std::string& unit,
                          double target) {
    bench::judged(name, value, unit, target, false);
    met = met && value <= target;
  };
  judged("memory per tensor of a further rule of 8 steps", further, "bytes", 160);
  judged("memory per state", each, "bytes", 160);
  judged("from the assignment to live, CPU", live, "s", 2);
  bench::figure("a frame of 2 000 rows while nothing is written, longest",
                quiet.longest_quiet_frame, "ms");
  for (const auto& [name, seen] :
       {std::pair{"first snapshot", &whole}, std::pair{"next snapshot", &again}}) {
    const std::string what = std::string(name) + ": ";
    bench::figure(what + "commits", static_cast<double>(seen->commits), "");
    bench::figure(what + "bytes per state", static_cast<double>(seen->bytes) / states, "bytes");
    judged(what + "largest commit", static_cast<double>(seen->largest_commit) / 1e6, "MB", 4);
    judged(what + "longest stop of evaluation", seen->longest_take, "ms", 50);
    judged(what + "longest frame meanwhile", seen->longest_frame, "ms",
           50 + quiet.longest_quiet_frame);
  }
  return met;
}

}  // namespace
}  // namespace tocsin

int main(int argc, char** argv) {
  return tocsin::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000) ? 0 : 1;
}
