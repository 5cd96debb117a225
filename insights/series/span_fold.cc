#include "insights/series/span_fold.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "insights/series/open_bytes.h"

namespace tocsin::insights {
namespace {

constexpr double kNanosOfOneMicro = 1000;
constexpr double kNanosOfOneSecond = 1e9;
constexpr std::size_t kMostNames = 10'000;    // of spans, of a run
constexpr std::size_t kMostWorkers = 20'000;  // remembered; what is forgotten is read again
constexpr std::size_t kMostPhases = 64;       // of a step

std::uint64_t phase_track() {
  static const std::uint64_t hash = core::name_hash("phase");
  return hash;
}

}  // namespace

NameHalves halves_of(std::uint64_t hash) {
  return {static_cast<double>(hash >> 32U), static_cast<double>(hash & 0xFFFFFFFFU)};
}

std::uint64_t whole_of(double high, double low) {
  const auto half = [](double number) {
    return number >= 0 && number <= 4294967295.0 ? static_cast<std::uint64_t>(number) : 0;
  };
  return half(high) << 32U | half(low);
}

SpanFold::Names& SpanFold::names_of(const core::RunUid& run, SeriesWriter& into) {
  const auto [found, fresh] = names_.try_emplace(run);
  if (fresh) {
    for (auto& name : into.names_of(run, name_kind::kSpanName))
      found->second.emplace(name.first, std::move(name.second));
  }
  return found->second;
}

SpanFold::Worker& SpanFold::worker_of(const SegmentOf& segment, SeriesWriter& into) {
  const auto [found, fresh] =
      workers_.try_emplace({segment.run, segment.worker, segment.incarnation, segment.attempt});
  if (fresh) {
    found->second.segment = segment;
    restore(found->second, into.open_of(segment, OpenKind::phases));
  }
  return found->second;
}

void SpanFold::take_names(const core::RunUid& run, const core::Dictionary& names,
                          SeriesWriter& into) {
  for (const core::NamedEntry& entry : names) {
    if (entry.type == core::DictionaryType::track)
      into.name(run, FamilyKind::span, {entry.hash, entry.name, core::Role::other, {}});
    if (entry.type != core::DictionaryType::span_name) continue;
    Names& known = names_of(run, into);
    if (known.size() >= kMostNames && !known.contains(entry.hash)) continue;
    into.name_span(run, entry.hash, entry.name);
    known.insert_or_assign(entry.hash, std::string(entry.name));
  }
}

void SpanFold::take_spans(const core::FrameView& frame, const SegmentOf& segment,
                          SeriesWriter& into) {
  const core::Mode mode = frame.header().mode;
  for (std::size_t at = 0; at < frame.rows(); ++at) {
    const core::SpanRow row = frame.span(at);
    const double start = static_cast<double>(row.start) / kNanosOfOneMicro;
    const double length = static_cast<double>(std::max<std::int64_t>(0, row.duration));
    const NameHalves name = halves_of(row.name);
    std::array<double, span_column_of::columns> values{};
    values[span_column_of::end] = start + length / kNanosOfOneMicro;
    values[span_column_of::start] = start;
    values[span_column_of::nanos] = static_cast<double>(row.duration);
    values[span_column_of::name_high] = name.high;
    values[span_column_of::name_low] = name.low;
    values[span_column_of::step] = static_cast<double>(row.step);
    into.append(segment, FamilyKind::span, row.track, mode, values);
    if (row.track != phase_track() || row.duration < 0) continue;
    Worker& worker = worker_of(segment, into);
    Phases& phases = worker.modes[mode];
    if (row.step < phases.step) continue;
    if (row.step > phases.step) {
      end_step(worker, mode, into);
      phases.step = row.step;
    }
    if (phases.nanos.size() < kMostPhases || phases.nanos.contains(row.name))
      phases.nanos[row.name] += length;
    phases.time = std::max(phases.time, values[span_column_of::end]);
    worker.changed = true;
  }
}

void SpanFold::end_step(Worker& worker, core::Mode mode, SeriesWriter& into) {
  Phases& phases = worker.modes[mode];
  const auto nanos = std::exchange(phases.nanos, {});
  if (nanos.empty()) return;
  const Names& names = names_of(worker.segment.run, into);
  for (const auto& [name, sum] : nanos) {
    const auto known = names.find(name);
    if (known == names.end()) continue;
    const std::string text = "phase/" + known->second;
    const std::uint64_t hash = core::name_hash(text);
    into.name(worker.segment.run, FamilyKind::scalar, {hash, text, core::Role::other, "s", -1});
    const std::array<double, 2> values{sum / kNanosOfOneSecond, phases.time};
    into.add(worker.segment, FamilyKind::scalar, hash, mode, phases.step, values);
  }
  phases.time = 0;
  worker.changed = true;
}

void SpanFold::take(const core::FrameView& frame, const core::FrameBody& body, SeriesWriter& into) {
  const core::FrameHeader& header = frame.header();
  if (header.run.nil() || header.rank == core::kNodeAgentRank) return;
  if (const auto* names = std::get_if<core::Dictionary>(&body); names != nullptr)
    return take_names(header.run, *names, into);
  const SegmentOf segment{header.run, header.worker, header.incarnation, header.attempt,
                          header.rank};
  if (header.kind == core::FrameKind::step_end && frame.rows() > 0) {
    const auto worker =
        workers_.find({segment.run, segment.worker, segment.incarnation, segment.attempt});
    if (worker == workers_.end()) return;
    const auto mode = worker->second.modes.find(header.mode);
    if (mode != worker->second.modes.end() &&
        frame.step_end(frame.rows() - 1).step >= mode->second.step)
      end_step(worker->second, header.mode, into);
  }
  if (header.kind != core::FrameKind::span) return;
  constexpr std::int64_t kWholeNanosOfAMicro = 1000;
  into.heard(header.run, header.time / kWholeNanosOfAMicro);
  const bool numbered = (header.flags & core::frame_flag::kUnsequenced) == 0;
  if (numbered && !into.is_new(into.segment(segment), header.shard, header.sequence)) return;
  take_spans(frame, segment, into);
}

void SpanFold::settle(SeriesWriter& into) {
  for (auto& entry : workers_) {
    Worker& worker = entry.second;
    if (std::exchange(worker.changed, false))
      into.keep_open(worker.segment, OpenKind::phases, kept(worker));
  }
  if (workers_.size() <= kMostWorkers) return;
  workers_.clear();
  names_.clear();
}

std::string SpanFold::kept(const Worker& worker) {
  OpenBytes out;
  for (const auto& [mode, phases] : worker.modes) {
    out.put(static_cast<std::uint64_t>(mode));
    out.put(static_cast<std::uint64_t>(phases.step));
    out.put(phases.time);
    out.put(std::uint64_t{phases.nanos.size()});
    for (const auto& [name, nanos] : phases.nanos) {
      out.put(name);
      out.put(nanos);
    }
  }
  return out.text();
}

void SpanFold::restore(Worker& worker, std::string_view bytes) {
  OpenReading in(bytes);
  while (true) {
    const auto mode = static_cast<core::Mode>(in.word());
    Phases phases;
    phases.step = static_cast<std::int64_t>(in.word());
    phases.time = in.number();
    for (std::uint64_t left = in.word(); left > 0 && !in.short_of(); --left) {
      const std::uint64_t name = in.word();
      phases.nanos[name] = in.number();
    }
    if (in.short_of()) return;
    worker.modes[mode] = std::move(phases);
  }
}

}  // namespace tocsin::insights
