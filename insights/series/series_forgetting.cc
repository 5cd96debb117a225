// What a store of series forgets, and where it stands.
#include <chrono>

#include "insights/series/series_writer.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kRestAfter = 2000;  // commits without a value
constexpr std::size_t kMostKnownFamilies = 100'000;
constexpr const char* kWithKind =
    "SELECT id, uid FROM run r WHERE EXISTS (SELECT 1 FROM family WHERE run = r.id AND kind = ?)"
    " ORDER BY heard";
constexpr const char* kWithHistograms =
    "SELECT id, uid FROM run r WHERE EXISTS (SELECT 1 FROM family f JOIN histogram h ON h.family ="
    " f.id WHERE f.run = r.id AND f.kind = 1) ORDER BY heard";
constexpr const char* kStepsOfHistograms =
    "SELECT min((SELECT min(x) FROM histogram WHERE family = f.id)),"
    " max((SELECT max(x) FROM histogram WHERE family = f.id)) FROM family f WHERE f.run = ?"
    " AND f.kind = 1";

}  // namespace

std::vector<core::Position> SeriesWriter::positions() {
  std::vector<core::Position> out;
  StoreStatement get = database_->prepare("SELECT stream, part, next FROM position");
  while (get.next())
    out.push_back({{get.text(0), static_cast<std::int32_t>(get.integer(1))}, get.integer(2)});
  return out;
}

void SeriesWriter::forget_latest() {
  latest_run_ = nullptr;
  latest_key_ = nullptr;
}

// Everything is in the file: what was not used for long, or is too much, is read again when it is.
void SeriesWriter::forget_what_rests() {
  if (turn_ % kRestAfter != 0 && families_.size() < kMostKnownFamilies) return;
  const bool all = families_.size() >= kMostKnownFamilies;
  std::erase_if(families_,
                [&](const auto& entry) { return all || turn_ - entry.second.used > kRestAfter; });
}

void SeriesWriter::forget_run(std::int64_t id) {
  for (const char* sql :
       {"DELETE FROM histogram WHERE family IN (SELECT id FROM family WHERE run = ? AND kind = 1)",
        "DELETE FROM chunk WHERE family IN (SELECT id FROM family WHERE run = ?)",
        "DELETE FROM piece WHERE family IN (SELECT id FROM family WHERE run = ?)",
        "DELETE FROM rollup WHERE family IN (SELECT id FROM family WHERE run = ?)",
        "DELETE FROM aged WHERE family IN (SELECT id FROM family WHERE run = ?)",
        "DELETE FROM bad_chunk WHERE family IN (SELECT id FROM family WHERE run = ?)",
        "DELETE FROM family WHERE run = ?", "DELETE FROM name WHERE run = ?",
        "DELETE FROM sequence WHERE worker IN (SELECT id FROM worker WHERE run = ?)",
        "DELETE FROM frames_heard WHERE worker IN (SELECT id FROM worker WHERE run = ?)",
        "DELETE FROM lost WHERE worker IN (SELECT id FROM worker WHERE run = ?)",
        "DELETE FROM placed WHERE worker IN (SELECT id FROM worker WHERE run = ?)",
        "DELETE FROM open WHERE worker IN (SELECT id FROM worker WHERE run = ?)",
        "DELETE FROM run_node WHERE run = ?", "DELETE FROM run_node WHERE node = ?",
        "DELETE FROM worker WHERE run = ?", "DELETE FROM run WHERE id = ?"}) {
    StoreStatement gone = database_->prepare(sql);
    gone.bind(1, id).run();
  }
}

std::optional<std::int64_t> SeriesWriter::first_unspared(StoreStatement& rows) const {
  while (rows.next()) {
    if (!spared_.contains(rows.text(1))) return rows.integer(0);
  }
  return std::nullopt;
}

// Of the run that was heard of least lately; false: no run has any. New ones begin anew.
bool SeriesWriter::forget_kind(FamilyKind kind) {
  const auto number = static_cast<std::int64_t>(kind);
  StoreStatement oldest = database_->prepare(kWithKind);
  oldest.bind(1, number);
  const auto chosen = first_unspared(oldest);
  if (!chosen) return false;
  const std::int64_t id = *chosen;
  oldest.reset();
  static constexpr const char* kTensorsDown =
      "UPDATE run SET tensors_gone = 1, families = families -"
      " (SELECT count(*) FROM family f WHERE f.run = run.id AND f.kind = ?2) WHERE id = ?1";
  static constexpr const char* kBulkDown =
      "UPDATE run SET bulk_gone = 1, families = families -"
      " (SELECT count(*) FROM family f WHERE f.run = run.id AND f.kind = ?2) WHERE id = ?1";
  static constexpr const char* kHistogramsGone =
      "DELETE FROM histogram WHERE family IN"
      " (SELECT id FROM family WHERE run = ?1 AND kind = ?2)";
  static constexpr const char* kBadChunksGone =
      "DELETE FROM bad_chunk WHERE family IN"
      " (SELECT id FROM family WHERE run = ?1 AND kind = ?2)";
  for (const char* sql :
       {kHistogramsGone,
        "DELETE FROM chunk WHERE family IN (SELECT id FROM family WHERE run = ?1 AND kind = ?2)",
        "DELETE FROM piece WHERE family IN (SELECT id FROM family WHERE run = ?1 AND kind = ?2)",
        "DELETE FROM rollup WHERE family IN (SELECT id FROM family WHERE run = ?1 AND kind = ?2)",
        "DELETE FROM aged WHERE family IN (SELECT id FROM family WHERE run = ?1 AND kind = ?2)",
        kBadChunksGone, kind == FamilyKind::tensor ? kTensorsDown : kBulkDown,
        "DELETE FROM family WHERE run = ?1 AND kind = ?2"}) {
    StoreStatement gone = database_->prepare(sql);
    gone.bind(1, id).bind(2, number).run();
  }
  return true;
}

// The older half of those of the run that was heard of least lately; false: no run has any.
bool SeriesWriter::forget_histograms() {
  StoreStatement oldest = database_->prepare(kWithHistograms);
  const auto chosen = first_unspared(oldest);
  if (!chosen) return false;
  const std::int64_t id = *chosen;
  oldest.reset();
  StoreStatement steps = database_->prepare(kStepsOfHistograms);
  steps.bind(1, id);
  if (!steps.next()) return false;
  const std::int64_t middle = steps.integer(0) + (steps.integer(1) - steps.integer(0)) / 2;
  steps.reset();
  StoreStatement gone = database_->prepare(
      "DELETE FROM histogram WHERE x <= ?2 AND family IN (SELECT id FROM family WHERE run = ?1 AND"
      " kind = 1)");
  gone.bind(1, id).bind(2, middle).run();
  StoreStatement tell = database_->prepare("UPDATE run SET histograms_gone = 1 WHERE id = ?");
  tell.bind(1, id).run();
  return true;
}

core::Result<std::size_t> SeriesWriter::forget(core::WallTime before, std::uint64_t max_bytes,
                                               std::size_t most) {
  const std::int64_t oldest_kept =
      std::chrono::duration_cast<std::chrono::microseconds>(before.time_since_epoch()).count();
  begin();
  std::size_t forgotten = 0;
  for (; forgotten < most; ++forgotten) {
    const auto used = static_cast<std::uint64_t>(database_->number(
        "SELECT ((SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM"
        " pragma_freelist_count)) * (SELECT page_size FROM pragma_page_size)"));
    StoreStatement oldest = database_->prepare("SELECT id, uid, heard FROM run ORDER BY heard");
    const auto chosen = first_unspared(oldest);
    if (!chosen) break;
    const std::int64_t id = *chosen;
    const bool old = oldest.integer(2) < oldest_kept;
    if (!old && used <= max_bytes) break;
    oldest.reset();
    const bool room = !old && (forget_kind(FamilyKind::span) || forget_kind(FamilyKind::system) ||
                               forget_histograms() || forget_kind(FamilyKind::tensor));
    if (!room) forget_run(id);
  }
  if (forgotten > 0) {  // the numbers of what is known may be gone
    forget_latest();
    runs_.clear();
    segments_.clear();
    sequences_.clear();
    families_.clear();
    names_.clear();
    orders_.clear();
    links_.clear();
  }
  auto failed = database_->failure();
  open_ = false;
  database_->run(failed ? "COMMIT" : "ROLLBACK");
  auto after = database_->failure();
  if (!failed) return failed.error();
  if (!after) return after.error();
  return forgotten;
}

}  // namespace tocsin::insights
