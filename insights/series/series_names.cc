// Names of series, and how much of a run is kept.
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
