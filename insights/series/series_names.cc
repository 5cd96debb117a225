// Segments, names and histograms of series, and how much of a run is kept.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "insights/series/series_statements.h"
#include "insights/series/series_writer.h"

namespace tocsin::insights {
namespace {

constexpr std::size_t kMostRemembered =
    200'000;  // names; then they are written again when said again

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  return (a ^ (b + (a << 6U) + (a >> 2U))) * 0x9E3779B97F4A7C15ULL;
}

}  // namespace

std::int64_t SeriesWriter::segment(const SegmentOf& of) {
  const std::int64_t run = known(of.run).id;
  const SegmentKey key{run, of.worker, of.incarnation, of.attempt};
  if (latest_key_ != nullptr && *latest_key_ == key) return latest_segment_;
  const auto [found, fresh] = segments_.try_emplace(key, 0);
  if (!fresh) {
    latest_key_ = &found->first;
    return latest_segment_ = found->second;
  }
  begin();
  const auto bound = [&](StoreStatement& statement) {
    statement.bind(1, run).bind(2, static_cast<std::int64_t>(of.worker));
    statement.bind(3, static_cast<std::int64_t>(of.incarnation)).bind(4, std::int64_t{of.attempt});
  };
  bound(do_->get_segment);
  if (do_->get_segment.next()) found->second = do_->get_segment.integer(0);
  do_->get_segment.reset();
  if (found->second == 0) {
    bound(do_->put_segment);
    do_->put_segment.bind(5, std::int64_t{of.rank});
    if (do_->put_segment.next()) found->second = do_->put_segment.integer(0);
    do_->put_segment.run();
  }
  return found->second;
}

bool SeriesWriter::is_new(std::int64_t segment, std::uint16_t shard, std::uint64_t sequence) {
  const auto [found, fresh] = sequences_.try_emplace({segment, shard}, -1);
  if (fresh) {
    do_->get_sequence.bind(1, segment).bind(2, std::int64_t{shard});
    if (do_->get_sequence.next()) found->second = do_->get_sequence.integer(0);
    do_->get_sequence.reset();
  }
  const auto number = static_cast<std::int64_t>(sequence);
  if (number <= found->second) return false;
  found->second = number;
  begin();
  do_->put_sequence.bind(1, segment).bind(2, std::int64_t{shard}).bind(3, number).run();
  return true;
}

void SeriesWriter::name_worker(const core::RunUid& run, std::uint64_t hash, std::string_view text) {
  put_name(run, name_kind::kWorker, {hash, text, core::Role::other, {}, 0, {}, {}});
}

void SeriesWriter::name(const core::RunUid& run, FamilyKind kind, const SeriesName& name) {
  put_name(run, static_cast<std::int64_t>(kind), name);
}

// Producers say their names again and again: what was said last is not written again.
bool SeriesWriter::is_known(std::int64_t run, std::int64_t kind, const SeriesName& name) {
  const auto of = [](std::string_view text) { return std::hash<std::string_view>{}(text); };
  std::uint64_t said = mixed(of(name.text), static_cast<std::uint64_t>(name.role));
  for (const std::uint64_t part :
       {of(name.unit), of(name.shape), of(name.collections),
        static_cast<std::uint64_t>(name.direction), static_cast<std::uint64_t>(run),
        static_cast<std::uint64_t>(kind)})
    said = mixed(said, part);
  const std::uint64_t whose =
      mixed(mixed(static_cast<std::uint64_t>(run), static_cast<std::uint64_t>(kind)), name.hash);
  if (names_.size() >= kMostRemembered) names_.clear();
  const auto [found, fresh] = names_.try_emplace(whose, said);
  return !fresh && std::exchange(found->second, said) == said;
}

std::int64_t SeriesWriter::next_order(std::int64_t run, std::int64_t kind) {
  const auto [found, fresh] = orders_.try_emplace({run, kind}, 0);
  if (!fresh) return found->second;
  do_->get_order.bind(1, run).bind(2, kind);
  if (do_->get_order.next()) found->second = do_->get_order.integer(0);
  do_->get_order.reset();
  return found->second;
}

void SeriesWriter::put_name(const core::RunUid& run, std::int64_t kind, const SeriesName& name) {
  const std::int64_t id = known(run).id;
  if (is_known(id, kind, name)) return;
  begin();
  const std::int64_t order = next_order(id, kind);
  if (order >= kMostFamilies) return;  // nor are there values of it
  StoreStatement& put = do_->put_name;
  put.bind(1, id).bind(2, kind).bind(3, static_cast<std::int64_t>(name.hash)).bind(4, name.text);
  put.bind(5, order).bind(6, static_cast<std::int64_t>(name.role)).bind(7, name.unit);
  put.bind(8, name.direction).bind(9, name.shape).bind(10, name.collections);
  if (put.next() && put.integer(0) == order) ++orders_[{id, kind}];
  put.run();
}

void SeriesWriter::refuse(const core::RunUid& run) {
  ++refused_;
  ++known(run).refused;
  changed_.insert(run);
}

void SeriesWriter::add_histogram(const SegmentOf& of, std::uint64_t name, core::Mode mode,
                                 std::int64_t x, std::string_view bytes) {
  const Family* into =
      family(of.run, {known(of.run).id, static_cast<std::int64_t>(FamilyKind::tensor), name,
                      segment(of), static_cast<std::int64_t>(mode)});
  if (into == nullptr) return;
  begin();
  do_->put_histogram.bind(1, into->id).bind(2, x).bind_blob(3, bytes).run();
}

void SeriesWriter::note_extremes(Family& family, std::int64_t x, std::span<const double> values) {
  const bool tensor = family.kind == FamilyKind::tensor;
  const double size = std::fabs(values[tensor ? tensor_column::abs_max : kValueColumn]);
  const bool bad = tensor ? values[tensor_column::nan] + values[tensor_column::posinf] +
                                    values[tensor_column::neginf] >
                                0
                          : !std::isfinite(size);
  if (bad && family.bad_x < 0) family.bad_x = x;
  if (std::isfinite(size)) family.worst = std::max(family.worst, std::bit_cast<std::int64_t>(size));
}

}  // namespace tocsin::insights
