// Chunks that cannot be read any more: each goes by itself, and the file stays.
#include <string>

#include "insights/series/column_codec.h"
#include "insights/series/loss_line.h"
#include "insights/series/series_statements.h"
#include "insights/series/series_writer.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

// The queue of the hook that such rows come by.
std::string_view lane_of(FamilyKind kind) {
  if (kind == FamilyKind::tensor) return "statistics";
  if (kind == FamilyKind::system) return "system";
  return kind == FamilyKind::span ? "spans" : "scalars";
}

bool is_whole(std::string_view bytes, FamilyKind kind) {
  const auto rows = decode_rows(bytes);
  return rows && rows->columns.size() == columns_of(kind).size();
}

}  // namespace

// All are of one size but the last, which ageing may have closed early.
std::int64_t SeriesWriter::rows_of_chunk(std::int64_t family, std::int64_t x0) {
  StoreStatement of = database_->prepare(
      "SELECT f.chunked - coalesce((SELECT rows_gone FROM aged WHERE family = f.id), 0) -"
      " coalesce((SELECT sum(rows) FROM bad_chunk WHERE family = f.id), 0) FROM family f WHERE"
      " f.id = ?1 AND NOT EXISTS (SELECT 1 FROM chunk WHERE family = ?1 AND x0 > ?2)");
  of.bind(1, family).bind(2, x0);
  if (!of.next()) return static_cast<std::int64_t>(kChunkRows);
  std::int64_t out = of.integer(0);
  StoreStatement others = database_->prepare("SELECT data FROM chunk WHERE family = ? AND x0 < ?");
  others.bind(1, family).bind(2, x0);
  while (others.next()) {
    const auto rows = decode_columns(others.text(0), 0);
    out -= rows ? static_cast<std::int64_t>(rows->size()) : static_cast<std::int64_t>(kChunkRows);
  }
  return out;
}

core::Result<bool> SeriesWriter::drop_bad(std::int64_t family, std::int64_t x0) {
  begin();
  bool dropped = false;
  StoreStatement get = database_->prepare(
      "SELECT c.x1, f.kind, f.worker, c.data FROM chunk c JOIN family f ON f.id = c.family WHERE"
      " c.family = ? AND c.x0 = ?");
  get.bind(1, family).bind(2, x0);
  if (get.next() && !is_whole(get.text(3), static_cast<FamilyKind>(get.integer(1)))) {
    const std::int64_t x1 = get.integer(0);
    const auto kind = static_cast<FamilyKind>(get.integer(1));
    const std::int64_t worker = get.integer(2);
    get.reset();
    const std::int64_t rows = rows_of_chunk(family, x0);
    StoreStatement gone = database_->prepare("DELETE FROM chunk WHERE family = ? AND x0 = ?");
    gone.bind(1, family).bind(2, x0).run();
    StoreStatement keep = database_->prepare("INSERT OR REPLACE INTO bad_chunk VALUES (?,?,?,?)");
    keep.bind(1, family).bind(2, x0).bind(3, x1).bind(4, rows).run();
    StoreStatement& put = do_->put_lost;
    put.bind(1, worker).bind(2, lane_of(kind)).bind(3, kUnreadable);
    put.bind(4, std::int64_t{1})
        .bind(5, rows)
        .bind(6, std::optional(x0))
        .bind(7, std::optional(x1));
    put.run();
    dropped = true;
  }
  get.reset();
  const auto written = database_->failure();
  open_ = false;
  database_->run(written ? "COMMIT" : "ROLLBACK");
  const auto ended = database_->failure();
  if (!written) return written.error();
  if (!ended) return ended.error();
  return dropped;
}

}  // namespace tocsin::insights
