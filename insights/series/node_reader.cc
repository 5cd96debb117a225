// Which nodes and workers a run has.
#include "insights/series/series_reader.h"
#include "insights/store/database.h"

namespace tocsin::insights {

std::vector<ServedNode> SeriesReader::nodes(const std::string& run) {
  StoreStatement get = database_->prepare(
      "SELECT n.uid, coalesce((SELECT text FROM name WHERE run = n.id AND kind = 4 LIMIT 1), ''),"
      " l.x_first, l.x_last FROM run_node l JOIN run n ON n.id = l.node WHERE l.run ="
      " (SELECT id FROM run WHERE uid = ?) ORDER BY 2, 1");
  get.bind(1, std::string_view(run));
  std::vector<ServedNode> out;
  while (get.next()) {
    ServedNode one{get.text(0), get.text(1), get.integer(2), get.integer(3)};
    if (one.name.empty()) one.name = "node " + one.owner.substr(0, 8);
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<WorkerLine> SeriesReader::workers(const std::string& run) {
  // A file that no writer of this version has opened does not have the table.
  const bool placed =
      database_->number("SELECT count(*) FROM sqlite_master WHERE name = 'placed'") > 0;
  StoreStatement get = database_->prepare(
      "SELECT coalesce((SELECT text FROM name WHERE run = w.run AND kind = 4 AND hash = w.hash), "
      "''),"
      " w.rank, w.attempt, w.incarnation, coalesce(w.node, ''), " +
      std::string(placed ? "(SELECT said FROM placed WHERE worker = w.id)" : "NULL") +
      " FROM worker w WHERE w.run = (SELECT id FROM run WHERE uid = ?)"
      " ORDER BY w.rank, w.incarnation, w.attempt");
  get.bind(1, std::string_view(run));
  std::vector<WorkerLine> out;
  while (get.next()) {
    WorkerLine one{get.text(0),    get.integer(1), get.integer(2),
                   get.integer(3), get.text(4),    get.maybe(5)};
    if (one.name.empty()) one.name = "worker_" + std::to_string(one.rank);
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<ServedNode> SeriesReader::all_nodes() {
  // A node's uid has the marks of node_owner.h.
  StoreStatement get = database_->prepare(
      "SELECT r.uid, n.text FROM run r JOIN name n ON n.run = r.id AND n.kind = 4 WHERE r.uid LIKE"
      " '________-____-8e6e-af64-656f776e____' GROUP BY r.uid ORDER BY 2, 1");
  std::vector<ServedNode> out;
  while (get.next()) out.push_back({get.text(0), get.text(1), 0, 0});
  return out;
}

bool SeriesReader::sampled_by(const std::string& owner, std::int64_t until) {
  StoreStatement get = database_->prepare(
      "SELECT EXISTS(SELECT 1 FROM family WHERE run = (SELECT id FROM run WHERE uid = ?) AND kind "
      "= "
      "5 AND rows > 0 AND x_first <= ?)");
  get.bind(1, std::string_view(owner)).bind(2, until);
  return get.next() && get.integer(0) != 0;
}

std::vector<PlacedWorker> SeriesReader::placed_workers() {
  StoreStatement get = database_->prepare(
      "SELECT DISTINCT r.uid, w.node, coalesce((SELECT text FROM name WHERE run = w.run AND kind = "
      "4"
      " AND hash = w.hash), ''), w.rank, w.attempt FROM worker w JOIN run r ON r.id = w.run"
      " WHERE w.node IS NOT NULL AND w.node <> '' ORDER BY r.uid, w.rank, w.attempt");
  std::vector<PlacedWorker> out;
  while (get.next()) {
    PlacedWorker one{get.text(0), get.text(1), get.text(2), get.integer(3), get.integer(4)};
    if (one.worker.empty()) one.worker = "worker_" + std::to_string(one.rank);
    out.push_back(std::move(one));
  }
  return out;
}

std::unordered_map<std::int64_t, std::string> SeriesReader::texts(const std::string& run,
                                                                  std::int64_t kind) {
  StoreStatement get = database_->prepare(
      "SELECT hash, text FROM name WHERE run = (SELECT id FROM run WHERE uid = ?) AND kind = ?");
  get.bind(1, std::string_view(run)).bind(2, kind);
  std::unordered_map<std::int64_t, std::string> out;
  while (get.next()) out.emplace(get.integer(0), get.text(1));
  return out;
}

bool SeriesReader::bulk_gone(const std::string& owner) {
  StoreStatement get = database_->prepare("SELECT bulk_gone FROM run WHERE uid = ?");
  get.bind(1, std::string_view(owner));
  return get.next() && get.integer(0) != 0;
}

}  // namespace tocsin::insights
