#include "insights/series/row_walk.h"

#include <algorithm>
#include <utility>

namespace tocsin::insights {
namespace {

constexpr std::int64_t kMostWidth = std::int64_t{1} << 52;
constexpr std::size_t kFew = RowWalk::kMostRows / 4;

core::Error rest_is_gone() {
  return {core::Code::data_loss, "values that were there when the table began are gone"};
}

}  // namespace

core::Result<RowWalk> RowWalk::begin(Open open, const SeriesAsk& ask) {
  RowWalk out(std::move(open), ask.run, ask.column);
  auto reader = out.open_();
  if (!reader) return reader.error();
  const auto found = ask_names(**reader, ask);
  if (!found) return found.error();
  for (const NamedFamilies& one : *found) out.choose(**reader, ask, one);
  if (const auto status = (*reader)->failure(); !status) return status.error();
  if (const auto status = out.all_there(); !status) return status.error();
  return out;
}

void RowWalk::choose(SeriesReader& reader, const SeriesAsk& ask, const NamedFamilies& named) {
  for (Stretch part : stretches(named.families)) {
    if (ask.from) part.lo = std::max(part.lo, *ask.from);
    if (ask.to) part.hi = std::min(part.hi, *ask.to);
    const auto at_time = [&](std::int64_t micros) {
      return reader.x_at(part.family, kTimeColumn, static_cast<double>(micros));
    };
    if (ask.from_time) part.lo = std::max(part.lo, at_time(*ask.from_time));
    if (ask.to_time) part.hi = std::min(part.hi, at_time(*ask.to_time));
    if (part.lo < part.hi) series_.push_back({named.name, std::move(part)});
  }
}

// A table of every value must not begin where the rest happens to be kept, and not say so.
core::Status RowWalk::all_there() const {
  std::int64_t from = 0;
  const WalkedSeries* gone = nullptr;
  for (const WalkedSeries& one : series_) {
    const std::int64_t kept = one.part.family.kept_from[kRowsPart];
    if (!one.part.family.rows_gone(one.part.lo) || kept <= from) continue;
    from = kept;
    gone = &one;
  }
  if (gone == nullptr) return core::ok();
  return core::Error{core::Code::failed_precondition,
                     "single values of " + gone->name.text + " before step " +
                         std::to_string(from) +
                         " are gone by their age (store.keep): give points for buckets, or from=" +
                         std::to_string(from)};
}

void RowWalk::rest() {
  family_.reset();
  reader_.reset();
}

// How much of a family is in chunks changes from reader to reader.
core::Status RowWalk::look_up(const WalkedSeries& series) {
  const FamilyLine& before = series.part.family;
  for (FamilyLine& one : reader_->families(run_, series.name.kind, series.name.hash)) {
    if (one.id == before.id && one.x_first == before.x_first && one.x_last >= before.x_last)
      family_ = std::move(one);
  }
  if (const auto status = reader_->failure(); !status) return status;
  return family_ ? core::ok() : core::Status(rest_is_gone());
}

// Where rows are rare the next look is wider; where it was too wide, what is too much waits.
void RowWalk::fill(const WalkedSeries& series, std::vector<WalkedRow>& out) {
  const std::int64_t end = width_ < series.part.hi - x_ ? x_ + width_ : series.part.hi;
  bool more = false;
  reader_->rows(
      *family_, x_, end,
      [&](const SeriesRows& rows) {
        const auto begin = std::lower_bound(rows.x.begin(), rows.x.end(), x_);
        for (auto at = begin; at != rows.x.end() && *at < end && !more; ++at) {
          more = out.size() == kMostRows;
          const auto row = static_cast<std::size_t>(at - rows.x.begin());
          if (!more)
            out.push_back({*at, rows.columns[column_][row], rows.columns[kTimeColumn][row]});
        }
      },
      (std::uint64_t{1} << column_) | (std::uint64_t{1} << kTimeColumn));
  x_ = more ? out.back().x + 1 : end;
  if (more) width_ = kMostRows;
  if (out.size() < kFew) width_ = std::min(width_ * 2, kMostWidth);
}

core::Result<const WalkedSeries*> RowWalk::next(std::vector<WalkedRow>& out) {
  out.clear();
  for (; at_ < series_.size(); ++at_) {
    const WalkedSeries& series = series_[at_];
    if (!reader_) {
      auto opened = open_();
      if (!opened) return opened.error();
      reader_ = std::move(*opened);
    }
    if (!family_) {
      if (const auto status = look_up(series); !status) return status.error();
    }
    x_ = std::max(x_, series.part.lo);
    while (out.empty() && x_ < series.part.hi) fill(series, out);
    if (const auto status = reader_->failure(); !status) return status.error();
    if (!out.empty()) return &series;
    family_.reset();
    x_ = 0;
    width_ = kMostRows;
  }
  return static_cast<const WalkedSeries*>(nullptr);
}

}  // namespace tocsin::insights
