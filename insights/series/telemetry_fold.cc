#include "insights/series/telemetry_fold.h"

#include <array>
#include <string>
#include <variant>

namespace tocsin::insights {
namespace {

constexpr std::int64_t kNanosOfAMicro = 1000;
constexpr double kNanosOfASecond = 1e9;

double whole_micros(std::int64_t nanos) {
  const std::int64_t micros = nanos / kNanosOfAMicro;
  return static_cast<double>(micros);
}

std::int64_t direction_of(const core::NameAttrs& attrs) {
  if (!attrs.direction) return 0;
  return *attrs.direction == core::Direction::min ? -1 : 1;
}

void fold_names(const core::RunUid& run, const core::Dictionary& names, SeriesWriter& into) {
  for (const core::NamedEntry& entry : names) {
    if (entry.type == core::DictionaryType::worker) into.name_worker(run, entry.hash, entry.name);
    if (entry.type != core::DictionaryType::scalar) continue;
    into.name(run, FamilyKind::scalar,
              {entry.hash, entry.name, entry.role, entry.attrs.unit, direction_of(entry.attrs)});
  }
}

void fold_scalars(const core::FrameView& frame, const SegmentOf& segment, SeriesWriter& into) {
  for (std::size_t at = 0; at < frame.rows(); ++at) {
    const core::ScalarRow row = frame.scalar(at);
    const std::array<double, 2> values{row.value, whole_micros(row.time)};
    into.add(segment, FamilyKind::scalar, row.name, frame.header().mode, row.step, values);
  }
}

void fold_step_ends(const core::FrameView& frame, const SegmentOf& segment, SeriesWriter& into) {
  static const std::string kName = "step_seconds";
  static const std::uint64_t kHash = core::name_hash(kName);
  if (frame.rows() > 0)
    into.name(segment.run, FamilyKind::clock, {kHash, kName, core::Role::other, "s", -1});
  for (std::size_t at = 0; at < frame.rows(); ++at) {
    const core::StepEndRow row = frame.step_end(at);
    const double seconds = static_cast<double>(row.end - row.start) / kNanosOfASecond;
    const std::array<double, 4> values{seconds, whole_micros(row.end),
                                       static_cast<double>(row.global_step),
                                       static_cast<double>(row.micro_steps)};
    into.add(segment, FamilyKind::clock, kHash, frame.header().mode, row.step, values);
  }
}

}  // namespace

void fold_frame(const core::FrameView& frame, const core::FrameBody& body, SeriesWriter& into) {
  const core::FrameHeader& header = frame.header();
  if (header.run.nil() || header.rank == core::kNodeAgentRank) return;
  const bool rows =
      header.kind == core::FrameKind::scalar || header.kind == core::FrameKind::step_end;
  const auto* names = std::get_if<core::Dictionary>(&body);
  if (!rows && names == nullptr) return;
  into.heard(header.run, header.time / kNanosOfAMicro);
  if (names != nullptr) return fold_names(header.run, *names, into);  // again and again the same
  const SegmentOf segment{header.run, header.worker, header.incarnation, header.attempt,
                          header.rank};
  const bool numbered = (header.flags & core::frame_flag::kUnsequenced) == 0;
  if (numbered && !into.is_new(into.segment(segment), header.shard, header.sequence)) return;
  if (header.kind == core::FrameKind::scalar) return fold_scalars(frame, segment, into);
  fold_step_ends(frame, segment, into);
}

}  // namespace tocsin::insights
