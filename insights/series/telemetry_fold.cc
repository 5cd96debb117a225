#include "insights/series/telemetry_fold.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "insights/series/exponential_counts.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kNanosOfAMicro = 1000;
constexpr std::int64_t kNanosOfAMilli = 1'000'000;
constexpr double kNanosOfASecond = 1e9;
constexpr std::size_t kDimBytes = 8;

double whole_micros(std::int64_t nanos) {
  const std::int64_t micros = nanos / kNanosOfAMicro;
  return static_cast<double>(micros);
}

std::int64_t direction_of(const core::NameAttrs& attrs) {
  if (!attrs.direction) return 0;
  return *attrs.direction == core::Direction::min ? -1 : 1;
}

std::string shape_of(const core::NamedEntry& entry) {
  std::string out;
  for (std::size_t at = 0; at + kDimBytes <= entry.dims_bytes.size(); at += kDimBytes) {
    std::int64_t size = 0;
    std::memcpy(&size, entry.dims_bytes.data() + at, kDimBytes);
    if (!out.empty()) out += "×";
    out += std::to_string(size);
  }
  return out;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ",") + text;
  return out;
}

void fold_names(const core::RunUid& run, const core::Dictionary& names, SeriesWriter& into) {
  for (const core::NamedEntry& entry : names) {
    if (entry.type == core::DictionaryType::tensor)
      into.name(run, FamilyKind::tensor,
                {entry.hash, entry.name, entry.role, entry.attrs.unit, direction_of(entry.attrs),
                 shape_of(entry), joined(entry.attrs.collections)});
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

// Elements by magnitude, by the row that they are of; of several the first counts.
using CountsOfRows = std::unordered_map<std::uint32_t, ExponentialCounts>;
CountsOfRows counts_of(const core::FrameView& frame) {
  constexpr std::uint16_t kHistogramTag = 3;
  CountsOfRows out;
  frame.extensions([&](std::uint16_t tag, std::span<const std::byte> payload) {
    if (tag != kHistogramTag) return;
    if (auto read = read_row_counts(payload)) out.try_emplace(read->row, std::move(read->counts));
  });
  return out;
}

// Text and tensors of an unknown type have no numbers but their count.
void fold_summaries(const core::FrameView& frame, const SegmentOf& segment, SeriesWriter& into) {
  const double time = whole_micros(frame.header().time);
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  CountsOfRows histograms = counts_of(frame);
  for (std::size_t at = 0; at < frame.rows(); ++at) {
    const core::SummaryRow row = frame.summary(at);
    if (row.count == 0 || (row.non_finite() == 0 && std::isnan(row.abs_sum))) continue;
    std::array<double, tensor_column::columns> values{};
    values[tensor_column::l2] = row.l2();
    values[tensor_column::time] = time;
    values[tensor_column::mean] = row.mean();
    values[tensor_column::std] = row.std();
    values[tensor_column::min] = row.min;
    values[tensor_column::max] = row.max;
    values[tensor_column::abs_max] = row.abs_max();
    values[tensor_column::abs_mean] = row.abs_mean();
    values[tensor_column::zero] = number(row.zero) / row.n();
    values[tensor_column::negative] = number(row.negative) / row.n();
    values[tensor_column::nan] = number(row.nan);
    values[tensor_column::posinf] = number(row.posinf);
    values[tensor_column::neginf] = number(row.neginf);
    values[tensor_column::count] = row.n();
    const bool taken = into.add(segment, FamilyKind::tensor, row.name, frame.header().mode,
                                frame.header().step, values);
    const auto counted = histograms.find(static_cast<std::uint32_t>(at));
    if (!taken || counted == histograms.end()) continue;
    ExponentialCounts& counts = counted->second;
    counts.zero = row.zero;
    counts.nan = row.nan;
    counts.posinf = row.posinf;
    counts.neginf = row.neginf;
    into.add_histogram(segment, row.name, frame.header().mode, frame.header().step,
                       encode_counts(std::move(counts)));
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
  const SegmentOf segment{header.run, header.worker, header.incarnation, header.attempt,
                          header.rank};
  const bool numbered = (header.flags & core::frame_flag::kUnsequenced) == 0;
  const auto* told = std::get_if<core::Lifecycle>(&body);
  const bool first_time =
      !numbered || into.hear_frame(into.segment(segment), header.shard, header.sequence);
  if (first_time && told != nullptr && told->event == core::LifecycleEvent::gap) {
    into.heard(header.run, header.time / kNanosOfAMicro);
    return into.report_loss(into.segment(segment), *told);
  }
  const bool rows = header.kind == core::FrameKind::scalar ||
                    header.kind == core::FrameKind::step_end ||
                    header.kind == core::FrameKind::summary;
  const auto* names = std::get_if<core::Dictionary>(&body);
  if (told != nullptr && told->event == core::LifecycleEvent::start && !told->node.empty()) {
    into.heard(header.run, header.time / kNanosOfAMicro);
    return into.set_node(segment, told->node, header.time / kNanosOfAMilli);
  }
  if (!rows && names == nullptr) return;
  into.heard(header.run, header.time / kNanosOfAMicro);
  if (names != nullptr) return fold_names(header.run, *names, into);  // again and again the same
  if (numbered && !into.is_new(into.segment(segment), header.shard, header.sequence)) return;
  if (header.kind == core::FrameKind::scalar) return fold_scalars(frame, segment, into);
  if (header.kind == core::FrameKind::summary) return fold_summaries(frame, segment, into);
  fold_step_ends(frame, segment, into);
}

}  // namespace tocsin::insights
