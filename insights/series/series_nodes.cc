// Which nodes served a run, and what folds keep between two commits.
#include <algorithm>
#include <string>

#include "insights/series/series_statements.h"
#include "insights/series/series_writer.h"

namespace tocsin::insights {

std::vector<std::pair<std::uint64_t, std::string>> SeriesWriter::names_of(const core::RunUid& run,
                                                                          std::int64_t kind) {
  std::vector<std::pair<std::uint64_t, std::string>> out;
  StoreStatement get = database_->prepare("SELECT hash, text FROM name WHERE run = ? AND kind = ?");
  get.bind(1, known(run).id).bind(2, kind);
  while (get.next())
    out.emplace_back(static_cast<std::uint64_t>(get.integer(0)), std::string(get.text(1)));
  return out;
}

void SeriesWriter::name_sent(const core::RunUid& node, std::uint64_t hash, std::string_view text) {
  put_name(node, name_kind::kSentSeries, {hash, text, core::Role::other, {}, 0, {}, {}});
}

void SeriesWriter::name_span(const core::RunUid& run, std::uint64_t hash, std::string_view text) {
  put_name(run, name_kind::kSpanName, {hash, text, core::Role::other, {}, 0, {}, {}});
}

void SeriesWriter::link_node(const core::RunUid& run, const core::RunUid& node, std::int64_t x) {
  ServedSpan& span = links_[{known(run).id, known(node).id}];
  if (span.last < 0) span.first = x;
  span.first = std::min(span.first, x);
  span.last = std::max(span.last, x);
  span.fresh = true;
  changed_.insert(run);
}

// Of the file's span and this one's the union stays.
void SeriesWriter::write_links() {
  for (auto& [which, span] : links_) {
    if (!span.fresh) continue;
    do_->put_link.bind(1, which.first).bind(2, which.second);
    do_->put_link.bind(3, span.first).bind(4, span.last).run();
    span.fresh = false;
  }
}

void SeriesWriter::set_node(const SegmentOf& of, std::string_view node, std::int64_t said) {
  const std::int64_t worker = segment(of);
  begin();
  do_->put_node.bind(1, node).bind(2, worker).run();
  do_->put_placed.bind(1, worker).bind(2, said).run();
  changed_.insert(of.run);
}

std::string SeriesWriter::open_of(const SegmentOf& of, OpenKind what) {
  do_->get_open.bind(1, segment(of)).bind(2, static_cast<std::int64_t>(what));
  std::string out;
  if (do_->get_open.next()) out = do_->get_open.text(0);
  do_->get_open.reset();
  return out;
}

void SeriesWriter::keep_open(const SegmentOf& of, OpenKind what, std::string_view bytes) {
  const std::int64_t worker = segment(of);
  begin();
  do_->put_open.bind(1, worker).bind(2, static_cast<std::int64_t>(what));
  do_->put_open.bind_blob(3, bytes).run();
}

}  // namespace tocsin::insights
