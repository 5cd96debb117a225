#include "rules/engine/units/samples.h"

#include <algorithm>

namespace tocsin::rules {
namespace {

const std::string& node_name(const Worker& worker) {
  return worker.agent || worker.node.empty() ? worker.name : worker.node;
}

}  // namespace

void Samples::on_system(const Turn& turn, Run& run, std::uint32_t worker,
                        const core::FrameView& frame) {
  if (frame.header().row_stride < core::system_column::columns * core::kColumnBytes) return;
  if (!turn.rules().takers_of(input::kSamples).empty()) {
    const std::string& name = node_name(run.workers[worker]);
    evaluations_.feed_all(turn, run, input::kSamples, [&](Evaluator& one, Scope& scope) {
      one.on_samples(worker, name, frame, scope);
    });
  }
  if (turn.rules().takers_of(input::kSnapshots).empty()) return;
  NodeState& node = run.nodes[run.workers[worker].name_hash];
  node.worker = worker;
  const auto names = frame.column<std::uint64_t>(core::system_column::series);
  const auto times = frame.column<std::int64_t>(core::system_column::time);
  const auto numbers = frame.column<double>(core::system_column::value);
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    const Name* const name = run.names.table.find(names[i]);
    if (name == nullptr || !SnapshotBuilder::knows(name->text)) continue;
    const std::int64_t time = times[i];
    if (time > add(core::nanoseconds(turn.record.timestamp), options_.config.max_clock_skew)) {
      ++stats_.discarded_samples;  // the far future: it would make every later sample a late one
      continue;
    }
    node.builder.check_clock(time, options_.config.max_clock_skew.count());
    if (node.builder.closes(time)) close(turn, run, node, time);
    switch (node.builder.add(name->text, time, numbers[i])) {
      case SnapshotBuilder::Sample::late:
        ++stats_.late_rows;
        break;
      case SnapshotBuilder::Sample::discarded:
        ++stats_.discarded_samples;
        break;
      case SnapshotBuilder::Sample::taken:
      case SnapshotBuilder::Sample::ignored:
        break;
    }
  }
}

void Samples::close(const Turn& turn, Run& run, NodeState& node, std::int64_t next) {
  const Worker& worker = run.workers[node.worker];
  const std::string name = node_name(worker);
  NodeSnapshot snapshot;
  if (node.builder.open()) snapshot = node.builder.take();
  snapshot.node = worker.name_hash;
  snapshot.name = name;
  snapshot.next = next;
  evaluations_.feed_all(turn, run, input::kSnapshots,
                        [&](Evaluator& one, Scope& scope) { one.on_snapshot(snapshot, scope); });
}

void Samples::flush(const Turn& turn, Run& run) {
  for (auto& [hash, node] : run.nodes) close(turn, run, node, kForever);
}

}  // namespace tocsin::rules
