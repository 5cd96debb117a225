// What never came: numbers of frames that are missing, and what hooks report as dropped.
#include <algorithm>
#include <utility>

#include "insights/series/loss_line.h"
#include "insights/series/series_reader.h"
#include "insights/series/series_statements.h"
#include "insights/series/series_writer.h"

namespace tocsin::insights {

bool SeriesWriter::hear_frame(std::int64_t segment, std::uint16_t shard, std::uint64_t sequence) {
  const auto [found, fresh] = heard_frames_.try_emplace({segment, shard});
  HeardFrames& of = found->second;
  if (fresh) {
    do_->get_frames.bind(1, segment).bind(2, std::int64_t{shard});
    if (do_->get_frames.next()) {
      of.last = do_->get_frames.integer(0);
      of.missing = do_->get_frames.integer(1);
    }
    do_->get_frames.reset();
  }
  const auto number = static_cast<std::int64_t>(sequence);
  if (number <= of.last) return false;
  // What was before the first one that the topic still had is not known to be lost.
  if (of.last >= 0) of.missing += number - of.last - 1;
  of.last = number;
  if (!std::exchange(of.fresh, true)) fresh_frames_.push_back(found->first);
  return true;
}

void SeriesWriter::report_loss(std::int64_t segment, const core::Lifecycle& gap) {
  begin();
  StoreStatement& put = do_->put_lost;
  put.bind(1, segment).bind(2, std::string_view(gap.lane)).bind(3, std::string_view(gap.reason));
  put.bind(4, static_cast<std::int64_t>(gap.frames)).bind(5, static_cast<std::int64_t>(gap.rows));
  put.bind(6, gap.first_step).bind(7, gap.last_step ? gap.last_step : gap.first_step).run();
}

void SeriesWriter::write_heard_frames() {
  for (const auto& key : std::exchange(fresh_frames_, {})) {
    HeardFrames& of = heard_frames_[key];
    of.fresh = false;
    do_->put_frames.bind(1, key.first).bind(2, std::int64_t{key.second});
    do_->put_frames.bind(3, of.last).bind(4, of.missing).run();
  }
}

std::vector<LossLine> SeriesReader::losses(const std::string& run) {
  std::vector<LossLine> out;
  // A file that no writer of this version has opened has no such table yet.
  if (database_->number("SELECT count(*) FROM sqlite_master WHERE name = 'lost'") == 0) return out;
  StoreStatement get = database_->prepare(
      "SELECT lane, reason, count(DISTINCT worker), sum(frames), sum(rows), min(x_first),"
      " max(x_last) FROM lost WHERE worker IN (SELECT id FROM worker WHERE run ="
      " (SELECT id FROM run WHERE uid = ?1)) GROUP BY lane, reason ORDER BY lane, reason");
  get.bind(1, std::string_view(run));
  while (get.next())
    out.push_back({get.text(0), get.text(1), get.integer(2), get.integer(3), get.integer(4),
                   get.maybe(5), get.maybe(6)});
  // A hook leaves the number of each frame that it drops unused.
  StoreStatement rest = database_->prepare(
      "SELECT count(*), sum(missing - told) FROM (SELECT sum(missing) AS missing,"
      " coalesce((SELECT sum(frames) FROM lost l WHERE l.worker = f.worker AND lane <> 'raw' AND "
      "reason <> 'unreadable'), 0)"
      " AS told FROM frames_heard f WHERE worker IN (SELECT id FROM worker WHERE run ="
      " (SELECT id FROM run WHERE uid = ?1)) GROUP BY worker) WHERE missing > told");
  rest.bind(1, std::string_view(run));
  if (rest.next() && rest.integer(0) > 0)
    out.push_back({"", std::string(kNeverCame), rest.integer(0), rest.integer(1), 0, {}, {}});
  return out;
}

}  // namespace tocsin::insights
