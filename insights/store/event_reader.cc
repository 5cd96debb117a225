#include "insights/store/event_reader.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

constexpr std::string_view kRunColumns =
    "SELECT uid, job, phase, coalesce(outcome, ''), labels, attempt, world, heard, step, started,"
    " ended, (SELECT count(*) FROM issue i WHERE i.run = uid AND firing AND NOT shadow"
    " AND i.attempt = run.attempt AND run.phase <> 'ended'),"
    " (SELECT count(*) FROM issue i WHERE i.run = uid AND NOT shadow),"
    " coalesce((SELECT max(severity) FROM issue i WHERE i.run = uid AND NOT shadow), -1),"
    " (SELECT count(DISTINCT e.slot) FROM told t JOIN event e ON e.seq = t.seq WHERE t.key IN"
    "   (SELECT key FROM issue WHERE run = uid) AND e.kind = 'delivery'"
    "   AND e.slot LIKE '%/delivered') FROM run ";

constexpr std::string_view kIssueColumns =
    "SELECT key, event_id, run, rule, coalesce(mode, ''), coalesce(tensor, ''),"
    " coalesce(worker, ''), summary, ordinal, (SELECT max(t.episode) FROM report_of_issue r JOIN "
    "told t ON"
    " t.key = r.key AND t.event_id = r.event_id WHERE r.key = issue.key AND"
    " r.ordinal = issue.ordinal), attempt, severity, opened, heard, reports, firing, caused, "
    "closed,"
    " step FROM issue ";

RunLine run_line(const StoreStatement& row) {
  RunLine out;
  out.uid = row.text(0);
  out.job = row.text(1);
  out.phase = row.text(2);
  out.outcome = row.text(3);
  out.labels = row.text(4);
  out.attempt = row.integer(5);
  out.world = row.integer(6);
  out.heard = row.integer(7);
  out.step = row.maybe(8);
  out.started = row.maybe(9);
  out.ended = row.maybe(10);
  out.open_issues = row.integer(11);
  out.issues = row.integer(12);
  out.worst = row.integer(13);
  out.told = row.integer(14);
  return out;
}

IssueLine issue_line(const StoreStatement& row) {
  IssueLine out;
  out.key = row.text(0);
  out.event_id = row.text(1);
  out.run = row.text(2);
  out.rule = row.text(3);
  out.mode = row.text(4);
  out.tensor = row.text(5);
  out.worker = row.text(6);
  out.summary = row.text(7);
  out.ordinal = row.integer(8);
  out.episode = row.maybe(9);
  out.attempt = row.integer(10);
  out.severity = row.integer(11);
  out.opened = row.integer(12);
  out.heard = row.integer(13);
  out.reports = row.integer(14);
  out.firing = row.integer(15) != 0;
  out.first_sign = row.integer(16) == 0;
  out.closed = row.maybe(17);
  out.step = row.maybe(18);
  return out;
}

std::string asked_with(std::string_view columns, std::string_view rest) {
  return std::string(columns) + std::string(rest);
}

}  // namespace

EventReader::EventReader(std::unique_ptr<StoreDatabase> database)
    : database_(std::move(database)) {}
EventReader::~EventReader() = default;
core::Status EventReader::failure() {
  auto out = database_->failure();
  if (!out && out.error().code == core::Code::data_loss && damage_) damage_(out.error().message);
  return out;
}

core::Result<std::unique_ptr<EventReader>> EventReader::open(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return core::unavailable("nothing is kept yet");
  auto database = StoreDatabase::open(path, false);
  if (!database) return database.error();
  // Its tables come with its number, in one transaction of the writer.
  const std::int64_t version = (*database)->number("PRAGMA user_version");
  if (const auto status = (*database)->failure(); !status) return status.error();
  if (version == 0) return core::unavailable("the store is being made; ask again in a moment");
  return std::unique_ptr<EventReader>(new EventReader(std::move(*database)));
}

std::vector<RunLine> EventReader::runs(const std::optional<After>& after, std::size_t most) {
  StoreStatement get = database_->prepare(
      asked_with(kRunColumns, "WHERE (heard, uid) < (?, ?) ORDER BY heard DESC, uid DESC LIMIT ?"));
  get.bind(1, after ? after->heard : INT64_MAX);
  get.bind(2, std::string_view(after ? after->uid : "")).bind(3, static_cast<std::int64_t>(most));
  std::vector<RunLine> out;
  while (get.next()) out.push_back(run_line(get));
  return out;
}

std::vector<RunLine> EventReader::runs_of(std::span<const std::string> uids) {
  StoreStatement get = database_->prepare(asked_with(kRunColumns, "WHERE uid = ?"));
  std::vector<RunLine> out;
  for (const std::string& uid : uids) {
    get.bind(1, std::string_view(uid));
    if (get.next()) out.push_back(run_line(get));
    get.reset();
  }
  return out;
}

std::optional<RunLine> EventReader::run(std::string_view uid) {
  if (uid.size() < 4) return std::nullopt;
  StoreStatement get = database_->prepare(
      asked_with(kRunColumns, "WHERE uid >= ?1 AND uid < ?1 || 'g' ORDER BY uid LIMIT 2"));
  get.bind(1, uid);
  if (!get.next()) return std::nullopt;
  RunLine out = run_line(get);
  if (get.next()) return std::nullopt;  // it is the beginning of two
  return out;
}

std::vector<IssueLine> EventReader::issues_of(const std::string& run, std::size_t most) {
  StoreStatement get = database_->prepare(asked_with(
      kIssueColumns, "WHERE run = ? AND NOT shadow ORDER BY opened, key, ordinal LIMIT ?"));
  get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(most));
  std::vector<IssueLine> out;
  while (get.next()) out.push_back(issue_line(get));
  return out;
}

std::vector<RunLine> EventReader::runs_since(std::int64_t heard, std::size_t most) {
  StoreStatement get = database_->prepare(
      "SELECT uid, job, phase, coalesce(outcome, ''), labels, attempt, world, heard, step, started,"
      " ended, 0, 0, 0, 0 FROM run WHERE heard >= ? ORDER BY heard DESC, uid LIMIT ?");
  get.bind(1, heard).bind(2, static_cast<std::int64_t>(most));
  std::vector<RunLine> out;
  while (get.next()) out.push_back(run_line(get));
  return out;
}

std::vector<IssueLine> EventReader::issues_since(std::int64_t opened, std::size_t most) {
  StoreStatement get = database_->prepare(
      asked_with(kIssueColumns,
                 "WHERE opened >= ? AND NOT shadow ORDER BY opened DESC, key, ordinal LIMIT ?"));
  get.bind(1, opened).bind(2, static_cast<std::int64_t>(most));
  std::vector<IssueLine> out;
  while (get.next()) out.push_back(issue_line(get));
  return out;
}

std::optional<KeptRecord> EventReader::first_report(const IssueLine& issue) {
  StoreStatement get = database_->prepare(
      "SELECT topic, part, pos, stamp, key, headers, value FROM event WHERE slot = ?");
  get.bind(1,
           std::string_view("issue/" + issue.key + "/" + std::to_string(issue.ordinal) + "/first"));
  auto found = records(get);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::optional<IssueLine> EventReader::issue(const std::string& key, std::string_view episode) {
  StoreStatement get = database_->prepare(
      asked_with(kIssueColumns, "WHERE key = ? ORDER BY ordinal DESC LIMIT 1000"));
  get.bind(1, std::string_view(key));
  std::optional<IssueLine> by_ordinal;
  while (get.next()) {
    IssueLine line = issue_line(get);
    if (episode == "newest" || (line.episode && std::to_string(*line.episode) == episode))
      return line;
    if (!line.episode && std::to_string(line.ordinal) == episode) by_ordinal = std::move(line);
  }
  return by_ordinal;
}

std::vector<KeptRecord> EventReader::records(StoreStatement& statement) {
  std::vector<KeptRecord> out;
  while (statement.next()) {
    KeptRecord kept;
    kept.record.topic = statement.text(0);
    kept.partition = static_cast<std::int32_t>(statement.integer(1));
    kept.offset = statement.integer(2);
    kept.timestamp = statement.integer(3);
    kept.record.key = statement.text(4);
    if (!unpack_headers(statement.text(5), kept.record)) continue;
    if (!statement.null(6)) kept.record.value = statement.text(6);
    out.push_back(std::move(kept));
  }
  return out;
}

std::vector<KeptRecord> EventReader::events_of(const std::string& run, std::size_t most) {
  StoreStatement get = database_->prepare(
      "SELECT topic, part, pos, stamp, key, headers, value FROM (SELECT * FROM event WHERE run = ?1"
      " UNION SELECT * FROM event WHERE seq IN (SELECT seq FROM told WHERE key IN"
      " (SELECT key FROM issue WHERE run = ?1)) UNION SELECT * FROM event WHERE kind = 'control'"
      " AND run = '') ORDER BY stamp, seq LIMIT ?2");
  get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(most));
  return records(get);
}

std::vector<KeptRecord> EventReader::attempts_of(const std::string& run) {
  StoreStatement get = database_->prepare(
      "SELECT topic, part, pos, stamp, key, headers, value FROM event WHERE run = ?1 AND kind ="
      " 'job' ORDER BY stamp, seq LIMIT ?2");
  get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(kMostEvents));
  return records(get);
}

std::vector<KeptRecord> EventReader::events_of_issue(const std::string& key, std::size_t most) {
  StoreStatement get = database_->prepare(
      "SELECT topic, part, pos, stamp, key, headers, value FROM (SELECT * FROM event WHERE slot >="
      " 'issue/' || ?1 || '/' AND slot < 'issue/' || ?1 || '0' UNION SELECT * FROM event WHERE seq "
      "IN"
      " (SELECT seq FROM told WHERE key = ?1) UNION SELECT * FROM event WHERE kind = 'control' AND"
      " run = '') ORDER BY stamp, seq LIMIT ?2");
  get.bind(1, std::string_view(key)).bind(2, static_cast<std::int64_t>(most));
  return records(get);
}

StoreSize EventReader::size() {
  StoreSize out;
  out.runs = database_->number("SELECT count(*) FROM run");
  out.issues = database_->number("SELECT count(*) FROM issue");
  out.events = database_->number("SELECT count(*) FROM event");
  out.bytes = database_->number(
      "SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM"
      " pragma_page_size)");
  return out;
}

}  // namespace tocsin::insights
