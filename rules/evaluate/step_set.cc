#include "rules/evaluate/step_set.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

#include "core/collections.h"

namespace tocsin::rules {
namespace {

std::vector<double> numbers(std::span<const std::byte> bytes) {
  std::vector<double> out(bytes.size() / sizeof(double));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(double));
  return out;
}

// `rows`: numbers of the frame's rows, ascending; `to`: where they stand.
void attach(std::span<StepRow> to, std::span<const std::uint32_t> rows, std::span<const Sent> kept,
            const core::FrameView& frame) {
  const auto row_at = [&](std::uint32_t number) -> StepRow* {
    const auto found = std::lower_bound(rows.begin(), rows.end(), number);
    if (found == rows.end() || *found != number) return nullptr;
    return &to[static_cast<std::size_t>(found - rows.begin())];
  };
  const auto keeps = [&](Sent what) {
    return std::find(kept.begin(), kept.end(), what) != kept.end();
  };
  frame.sparse_columns([&](const core::SparseColumn& column) {
    if (!keeps(column.stat)) return;
    for (std::size_t i = 0; i < column.size(); ++i) {
      StepRow* row = row_at(column.row(i));
      if (row == nullptr) continue;
      row->extras.push_back({column.stat, numbers(column.params_bytes), {column.value(i)}});
    }
  });
  frame.vectors([&](const core::SparseVector& vector) {
    StepRow* row = keeps(vector.stat) ? row_at(vector.row) : nullptr;
    if (row == nullptr) return;
    row->extras.push_back({vector.stat, numbers(vector.params_bytes), numbers(vector.value_bytes)});
  });
}

// What rows stand by; what is equal stays as it came.
auto sort_key(const StepRow& row) { return std::tie(row.rank, row.worker, row.row.name); }

}  // namespace

const SentStatistic* StepRow::find(Sent what, std::span<const double> parameters) const {
  const auto found = std::find_if(extras.begin(), extras.end(), [&](const SentStatistic& one) {
    return one.what == what && std::equal(parameters.begin(), parameters.end(),
                                          one.parameters.begin(), one.parameters.end());
  });
  return found == extras.end() ? nullptr : &*found;
}

std::optional<double> StepRow::statistic(core::SparseStat stat,
                                         std::span<const double> parameters) const {
  const SentStatistic* sent = find(stat, parameters);
  if (sent == nullptr || sent->values.empty()) return std::nullopt;
  return sent->values.front();
}

const std::vector<double>* StepRow::vector(core::VectorStat stat,
                                           std::span<const double> parameters) const {
  const SentStatistic* sent = find(stat, parameters);
  return sent == nullptr ? nullptr : &sent->values;
}

bool StepSets::add(const WorkerRows& from, bool per_worker, std::span<const Sent> kept,
                   const Scope& scope) {
  Waiting& here = nodes_.at(waiting_, {per_worker ? from.worker : Scope::kNoWorker,
                                       static_cast<std::uint8_t>(from.mode), from.step});
  here.global_step = std::max(here.global_step, from.global_step);
  here.time = std::max(here.time, from.time);
  here.first_offset = std::min(here.first_offset, from.offset);
  here.last_offset = std::max(here.last_offset, from.offset);
  here.after_train = std::max(here.after_train, from.after_train);
  if (here.rows.capacity() == 0) here.rows = spare();
  const std::size_t before = here.rows.size();
  if (here.rows.capacity() < before + from.rows.size()) {
    here.rows.reserve(std::max(before + from.rows.size(), 2 * before));
  }
  const std::uint32_t rank = scope.rank(from.worker);
  if (from.scalar != nullptr) here.rows.emplace_back(from, rank, *from.scalar);
  for (const std::uint32_t number : from.rows) here.rows.emplace_back(from, rank, number);
  if (from.frame != nullptr && !kept.empty()) {
    attach(std::span(here.rows).subspan(before), from.rows, kept, *from.frame);
  }
  rows_ += here.rows.size() - before;
  return rows_ <= kMostRows;
}

void StepSets::ended(const WorkerStep& step, bool per_worker, const Scope& scope) {
  const auto found = waiting_.find({per_worker ? step.worker : Scope::kNoWorker,
                                    static_cast<std::uint8_t>(step.mode), step.step});
  if (found == waiting_.end()) return;
  found->second.skipped = found->second.skipped || step.skipped;
  if (!step.partial) return;
  std::vector<std::uint32_t>& missing = found->second.missing;
  missing.insert(std::upper_bound(missing.begin(), missing.end(), scope.rank(step.worker)),
                 scope.rank(step.worker));
}

void StepSets::forget(std::uint32_t worker) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    std::vector<StepRow>& rows = at->second.rows;
    rows_ -= std::erase_if(rows, [&](const StepRow& row) { return row.worker == worker; });
    at = rows.empty() ? waiting_.erase(at) : std::next(at);
  }
}

std::vector<StepRow> StepSets::spare() {
  if (spares_.empty()) return {};
  std::vector<StepRow> out = std::move(spares_.back());
  spares_.pop_back();
  return out;
}

void StepSets::recycle(std::vector<StepRow> rows) {
  if (spares_.size() == kSpares) return;
  rows.clear();
  spares_.push_back(std::move(rows));
}

// A worker sends its tensors in one order, so one sort holds for most steps. A row is large: each
// moves once.
void StepSets::put_in_order(std::vector<StepRow>& rows) {
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const auto left = sort_key(rows[a]);
    const auto right = sort_key(rows[b]);
    return left < right || (left == right && a < b);
  };
  const auto out_of_order = [&](std::uint32_t a, std::uint32_t b) { return !before(a, b); };
  const auto sorts = [&] {
    return std::adjacent_find(order_.begin(), order_.end(), out_of_order) == order_.end();
  };
  if (order_.size() != rows.size() || !sorts()) {
    order_.resize(rows.size());
    std::iota(order_.begin(), order_.end(), 0U);
    if (!sorts()) std::sort(order_.begin(), order_.end(), before);
  }
  if (std::is_sorted(order_.begin(), order_.end())) return;
  std::vector<StepRow> sorted = spare();
  sorted.reserve(rows.size());
  for (const std::uint32_t number : order_) sorted.push_back(std::move(rows[number]));
  rows.swap(sorted);
  recycle(std::move(sorted));
}

StepSets::One StepSets::out(std::map<Key, Waiting>::iterator at) {
  One one = nodes_.take(waiting_, at);
  rows_ -= one.second.rows.size();
  put_in_order(one.second.rows);
  return one;
}

std::optional<StepSets::One> StepSets::take(std::uint32_t worker, core::Mode mode,
                                            std::int64_t step) {
  const auto first = waiting_.lower_bound({worker, static_cast<std::uint8_t>(mode), INT64_MIN});
  if (first == waiting_.end() || first->first.worker != worker ||
      first->first.mode != static_cast<std::uint8_t>(mode) || first->first.step > step) {
    return std::nullopt;
  }
  return out(first);
}

std::optional<StepSets::One> StepSets::take_before(core::Mode mode, std::int64_t step) {
  const auto number = static_cast<std::uint8_t>(mode);
  for (auto at = waiting_.lower_bound({Scope::kNoWorker, number, INT64_MIN});
       at != waiting_.end() && at->first.mode == number; ++at) {
    if (at->second.after_train < step) return out(at);
  }
  return std::nullopt;
}

std::optional<StepSets::One> StepSets::take_any() {
  const auto oldest =
      std::min_element(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) {
        return std::tie(a.second.global_step, a.first) < std::tie(b.second.global_step, b.first);
      });
  if (oldest == waiting_.end()) return std::nullopt;
  return out(oldest);
}

core::TensorRef SetReport::tensor(const StepRow& row) const {
  core::TensorRef out;
  out.name = scope_.text(row.name());
  out.dtype = core::meta::dtype(row.row.meta);
  if (const core::Collection* of = core::collection_of(row.role())) out.collection = of->name;
  if (const Name* known = scope_.find(row.name())) out.shape = known->shape;
  return out;
}

void SetReport::evaluated_as(std::span<const UnitLabel> unit, std::string_view name,
                             Verdict verdict, Scope::Explain explain) {
  const std::string_view mode = core::to_string(set_.mode);
  const bool one = set_.worker != Scope::kNoWorker;
  const bool known = one && set_.worker < scope_.workers();
  const std::string_view worker = known ? scope_.who(set_.worker).worker : std::string_view();
  UnitText text;
  for (const auto& [key, value] : unit) text.add(key).add("=").add(value).add("\x1e");
  text.add("\x1e").add(mode).add("\x1e").add(worker).add("\x1e");
  const std::uint64_t number = text.number();
  if (scope_.quiet(number, verdict)) return;
  const auto labels = [&]() -> Labels {
    Labels out;
    for (const auto& [key, value] : unit) out.emplace_back(key, value);
    out.emplace_back("mode", mode);
    if (one) out.emplace_back("worker", worker);
    return out;
  };
  Subject subject;
  subject.name = name;
  subject.worker = worker;
  subject.mode = set_.mode;
  subject.step = set_.step;
  scope_.judged(number, set_.worker, verdict, place_, subject, labels, explain);
}

void SetReport::evaluated(const Labels& unit, std::string_view name, Verdict verdict,
                          Scope::Explain explain) {
  std::vector<UnitLabel> labels;
  labels.reserve(unit.size());
  for (const auto& [key, value] : unit) labels.push_back({key, value});
  evaluated_as(labels, name, verdict, explain);
}

}  // namespace tocsin::rules
