#include "insights/store/event_writer.h"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/delivery_type.h"
#include "core/episode.h"
#include "core/json.h"
#include "insights/store/database.h"
#include "insights/store/schema.h"
#include "insights/store/set_aside.h"
#include "insights/store/store_lock.h"

namespace tocsin::insights {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostKnownRuns = 10'000;

std::int64_t micros(core::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
std::optional<std::int64_t> micros(const std::optional<core::WallTime>& time) {
  if (!time || *time == core::WallTime{}) return std::nullopt;
  return micros(*time);
}
std::optional<std::string> or_null(std::string text) {
  return text.empty() ? std::nullopt : std::optional<std::string>(std::move(text));
}
std::string labels_json(const core::Labels& labels) {
  core::ValueMap out;
  for (const auto& [name, value] : labels.entries()) out.emplace_back(name, value);
  return core::to_json(core::Value(std::move(out)));
}
std::string uid_or_empty(const core::RunUid& run) { return run.nil() ? "" : core::to_text(run); }

core::Result<std::unique_ptr<StoreDatabase>> open_prepared(const std::string& path,
                                                           std::string_view source) {
  auto made = StoreDatabase::open(path, true);
  if (!made) return made;
  if (auto status = prepare_store(**made); !status) return status.error();
  StoreStatement get = (*made)->prepare("SELECT value FROM meta WHERE key = 'source'");
  if (get.next() && get.text(0) != source)
    return core::Error{core::Code::failed_precondition, "it is of another place: " + get.text(0)};
  get = StoreStatement();
  StoreStatement put = (*made)->prepare("INSERT OR REPLACE INTO meta VALUES ('source', ?)");
  put.bind(1, source).run();
  if (auto status = (*made)->failure(); !status) return status.error();
  return made;
}

}  // namespace

core::Result<std::unique_ptr<EventWriter>> EventWriter::open(const std::string& path,
                                                             std::string_view source,
                                                             SetAside& moved,
                                                             const std::string& condemned) {
  std::error_code ignored;
  if (fs::path(path).has_parent_path())
    fs::create_directories(fs::path(path).parent_path(), ignored);
  auto lock = StoreLock::take(path);
  if (!lock) return lock.error();
  auto database = open_or_begin_anew(
      path, condemned, [&] { return open_prepared(path, source); }, moved);
  if (!database) return database.error();
  return std::unique_ptr<EventWriter>(new EventWriter(std::move(*database), std::move(*lock)));
}

struct EventWriter::Statements {
  StoreStatement put_event, put_position, put_run, run_began, first_heard, newest_issue, put_issue,
      end_issue, again_issue, put_report, put_told;
};

EventWriter::EventWriter(std::unique_ptr<StoreDatabase> database, std::unique_ptr<StoreLock> lock)
    : lock_(std::move(lock)), database_(std::move(database)), do_(std::make_unique<Statements>()) {
  do_->put_event = database_->prepare(
      "INSERT INTO event(slot, kind, time, run, topic, part, pos, stamp, key, headers, value)"
      " VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(slot) DO UPDATE SET time = excluded.time,"
      " topic = excluded.topic, part = excluded.part, pos = excluded.pos, stamp = excluded.stamp,"
      " key = excluded.key, headers = excluded.headers, value = excluded.value RETURNING seq");
  do_->put_position = database_->prepare("INSERT OR REPLACE INTO position VALUES (?,?,?,?)");
  do_->put_run = database_->prepare(
      "INSERT INTO run VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(uid) DO UPDATE SET"
      " job = excluded.job, phase = CASE WHEN excluded.attempt = attempt AND phase = 'ended' THEN"
      " 'ended' ELSE excluded.phase END,"
      " outcome = CASE WHEN excluded.attempt = attempt THEN coalesce(excluded.outcome, outcome) "
      "ELSE"
      " excluded.outcome END, step = coalesce(excluded.step, step),"
      " step_seconds = coalesce(excluded.step_seconds, step_seconds), world = excluded.world,"
      " started = coalesce(started, excluded.started),"
      " ended = CASE WHEN excluded.attempt = attempt THEN coalesce(excluded.ended, ended) ELSE"
      " excluded.ended END, heard = max(heard, excluded.heard), labels = excluded.labels,"
      " attempt = excluded.attempt WHERE excluded.attempt >= attempt");
  // Also of an attempt before the newest: records of other producers may come before it.
  do_->run_began =
      database_->prepare("UPDATE run SET started = min(coalesce(started, ?1), ?1) WHERE uid = ?2");
  do_->first_heard = database_->prepare(
      "INSERT OR IGNORE INTO run VALUES (?,?,?,'started',NULL,NULL,NULL,0,NULL,NULL,?,'{}')");
  do_->newest_issue = database_->prepare(
      "SELECT ordinal, firing, severity FROM issue WHERE key = ? ORDER BY ordinal DESC LIMIT 1");
  do_->put_issue = database_->prepare(
      "INSERT OR REPLACE INTO issue VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,1)");
  do_->end_issue = database_->prepare(
      "UPDATE issue SET firing = 0, closed = ?, heard = ?, reports = reports + 1"
      " WHERE key = ? AND ordinal = ?");
  do_->again_issue = database_->prepare(
      "UPDATE issue SET heard = ?, severity = max(severity, ?), reports = reports + 1"
      " WHERE key = ? AND ordinal = ?");
  do_->put_report = database_->prepare("INSERT OR IGNORE INTO report_of_issue VALUES (?,?,?)");
  do_->put_told = database_->prepare("INSERT OR REPLACE INTO told VALUES (?,?,?,?)");
}

EventWriter::~EventWriter() = default;

std::vector<core::Position> EventWriter::positions() {
  std::vector<core::Position> out;
  StoreStatement get = database_->prepare("SELECT stream, part, next FROM position");
  while (get.next()) {
    out.push_back({{get.text(0), static_cast<std::int32_t>(get.integer(1))}, get.integer(2)});
  }
  return out;
}

void EventWriter::begin() {
  if (!std::exchange(open_, true)) database_->run("BEGIN IMMEDIATE");
}

std::int64_t EventWriter::keep(const KeptRecord& kept, std::string_view slot, std::string_view kind,
                               std::string_view run) {
  begin();
  do_->put_event.bind(1, slot).bind(2, kind).bind(3, kept.timestamp / 1000).bind(4, run);
  do_->put_event.bind(5, std::string_view(kept.record.topic)).bind(6, std::int64_t{kept.partition});
  do_->put_event.bind(7, kept.offset)
      .bind(8, kept.timestamp)
      .bind(9, std::string_view(kept.record.key));
  do_->put_event.bind_blob(10, packed_headers(kept.record));
  if (kept.record.value) do_->put_event.bind_blob(11, *kept.record.value);
  const std::int64_t seq = do_->put_event.next() ? do_->put_event.integer(0) : 0;
  do_->put_event.run();
  return seq;
}

void EventWriter::note_run(const core::RunUid& run) {
  if (!run.nil()) changed_.insert(core::to_text(run));
}

void EventWriter::saw(const KeptRecord& kept, const core::Issue& issue) {
  begin();
  const std::string key = core::issue_key(issue.labels);
  const std::string run = uid_or_empty(issue.run.uid);
  do_->newest_issue.bind(1, std::string_view(key));
  const bool known = do_->newest_issue.next();
  std::int64_t ordinal = known ? do_->newest_issue.integer(0) : 0;
  const bool fired = known && do_->newest_issue.integer(1) != 0;
  const std::int64_t severity = known ? do_->newest_issue.integer(2) : 0;
  do_->newest_issue.reset();
  const bool fires = issue.status == core::IssueStatus::firing;
  const bool begins = !known || (fires && !fired);
  if (begins) ++ordinal;
  do_->put_report.bind(1, std::string_view(key)).bind(2, std::string_view(issue.event_id));
  do_->put_report.bind(3, ordinal).run();
  if (database_->changes() == 0) return;  // it was seen before
  std::string slot = "issue/" + key + "/" + std::to_string(ordinal);
  const std::int64_t grade = static_cast<std::int64_t>(issue.severity);
  if (begins) {
    const core::WallTime opened =
        issue.starts_at == core::WallTime{} ? issue.time : issue.starts_at;
    do_->put_issue.bind(1, std::string_view(key)).bind(2, ordinal);
    do_->put_issue.bind(3, std::string_view(issue.event_id)).bind(4, std::string_view(run));
    do_->put_issue.bind(5, std::int64_t{issue.run.attempt}).bind(6, std::string_view(issue.rule));
    do_->put_issue.bind(7, grade).bind(8, std::int64_t{fires ? 1 : 0}).bind(9, micros(opened));
    do_->put_issue.bind(10, fires ? std::nullopt : std::optional(micros(issue.time)));
    do_->put_issue.bind(11, micros(issue.time));
    do_->put_issue.bind(
        12, issue.mode ? std::optional(std::string(core::to_string(*issue.mode))) : std::nullopt);
    do_->put_issue.bind(13, issue.step);
    do_->put_issue.bind(
        14, issue.evidence.tensor ? or_null(issue.evidence.tensor->name) : std::nullopt);
    do_->put_issue.bind(15, or_null(std::string(issue.labels.get("worker"))));
    do_->put_issue.bind(16, std::string_view(issue.summary));
    do_->put_issue.bind(17, std::int64_t{issue.caused_by.empty() ? 0 : 1});
    do_->put_issue.bind(18, std::int64_t{issue.shadow ? 1 : 0}).run();
    slot += "/first";
  } else if (!fires) {
    do_->end_issue.bind(1, micros(issue.ends_at.value_or(issue.time))).bind(2, micros(issue.time));
    do_->end_issue.bind(3, std::string_view(key)).bind(4, ordinal).run();
    slot += "/end";
  } else {
    do_->again_issue.bind(1, micros(issue.time)).bind(2, grade).bind(3, std::string_view(key));
    do_->again_issue.bind(4, ordinal).run();
    slot += grade > severity ? "/worse/" + std::to_string(grade) : "/again";
  }
  keep(kept, slot, "issue", run);
  note_run(issue.run.uid);
  hear_of_run(issue, run);
}

// A producer may tell of a run that nobody has begun.
void EventWriter::hear_of_run(const core::Issue& issue, const std::string& run) {
  if (issue.run.uid.nil()) return;
  if (known_runs_.size() >= kMostKnownRuns) known_runs_.clear();
  if (!known_runs_.insert(issue.run.uid).second) return;
  do_->first_heard.bind(1, std::string_view(run)).bind(2, std::string_view(issue.run.job));
  do_->first_heard.bind(3, std::int64_t{issue.run.attempt}).bind(4, micros(issue.time)).run();
}

void EventWriter::saw(const KeptRecord& kept, const core::JobEvent& job) {
  const std::string run = uid_or_empty(job.run.uid);
  keep(kept,
       "job/" + run + "/" + std::to_string(job.run.attempt) + "/" +
           std::string(core::to_string(job.phase)),
       "job", run);
  do_->put_run.bind(1, std::string_view(run)).bind(2, std::string_view(job.run.job));
  do_->put_run.bind(3, std::int64_t{job.run.attempt});
  do_->put_run.bind(4, core::to_string(job.phase)).bind(5, or_null(job.outcome)).bind(6, job.step);
  do_->put_run.bind(7, std::optional<std::int64_t>());
  do_->put_run.bind(8, std::int64_t{job.world_size}).bind(9, micros(job.started_at));
  do_->put_run.bind(10, micros(job.ended_at)).bind(11, micros(job.time));
  do_->put_run.bind(12, std::string_view(labels_json(job.labels))).run();
  if (job.started_at)
    do_->run_began.bind(1, micros(job.started_at)).bind(2, std::string_view(run)).run();
  note_run(job.run.uid);
}

void EventWriter::saw(const KeptRecord& kept, const core::RuleStatusEvent& rule) {
  const std::string run = uid_or_empty(rule.run.uid);
  // One that sums up is kept beside what comes later: a status without a summary takes none back.
  keep(kept, "rule/" + run + "/" + rule.rule + (rule.summary.empty() ? "" : "/summary"), "rule",
       run);
  note_run(rule.run.uid);
}

void EventWriter::saw(const KeptRecord& kept, const core::Command& command) {
  keep(kept, "command/" + command.command_id, "command", uid_or_empty(command.run));
  note_run(command.run);
}

void EventWriter::saw(const KeptRecord& kept, const core::Ack& ack) {
  keep(
      kept,
      "ack/" + ack.command_id + "/" + std::to_string(ack.rank) + "/" + ack.action + "/" + ack.phase,
      "ack", uid_or_empty(ack.run));
  note_run(ack.run);
}

void EventWriter::saw(const KeptRecord& kept, const core::Delivery& delivery) {
  const std::int64_t seq =
      keep(kept,
           "delivery/" + delivery.notification_id + "/" + std::to_string(delivery.attempt) + "/" +
               std::string(core::to_string(delivery.state)),
           core::tells_people(delivery.type) ? "delivery" : "deed", "");
  for (const core::IssueRef& issue : delivery.issues) {
    do_->put_told.bind(1, std::string_view(issue.issue_key)).bind(2, seq);
    do_->put_told.bind(3, std::string_view(issue.event_id));
    do_->put_told.bind(4, static_cast<std::int64_t>(issue.episode)).run();
  }
}

void EventWriter::saw_control(const KeptRecord& kept, std::string_view run) {
  const std::string slot = "control/" + kept.record.topic + "/" + kept.record.key;
  keep(kept, slot, "control", run);
  // What is taken back does not say of which run it was: the row does, from when it was said.
  StoreStatement whose = database_->prepare("SELECT run FROM event WHERE slot = ?");
  whose.bind(1, std::string_view(slot));
  const std::string known = whose.next() ? whose.text(0) : "";
  whose.reset();
  if (known.empty() && !run.empty()) {
    StoreStatement put = database_->prepare("UPDATE event SET run = ? WHERE slot = ?");
    put.bind(1, run).bind(2, std::string_view(slot)).run();
  }
  const std::string of = known.empty() ? std::string(run) : known;
  if (!of.empty()) changed_.insert(of);
}

core::Status EventWriter::commit(const std::vector<core::Position>& positions) {
  begin();
  for (const core::Position& one : positions) {
    do_->put_position.bind(1, std::string_view(one.where.stream));
    do_->put_position.bind(2, std::string_view(one.where.stream));
    do_->put_position.bind(3, std::int64_t{one.where.partition}).bind(4, one.next).run();
  }
  auto before = database_->failure();
  open_ = false;
  changed_.clear();
  database_->run(before ? "COMMIT" : "ROLLBACK");
  const auto after = database_->failure();
  if (!before || !after) known_runs_.clear();
  if (!before) return before;
  if (!after) {
    database_->run("ROLLBACK");
    (void)database_->failure();
  }
  return after;
}

void EventWriter::forget_run(const std::string& uid) {
  static constexpr const char* kToldEvents =
      "DELETE FROM event WHERE seq IN"
      " (SELECT seq FROM told WHERE key IN (SELECT key FROM issue WHERE run = ?))";
  for (const char* sql :
       {kToldEvents, "DELETE FROM told WHERE key IN (SELECT key FROM issue WHERE run = ?)",
        "DELETE FROM report_of_issue WHERE key IN (SELECT key FROM issue WHERE run = ?)",
        "DELETE FROM issue WHERE run = ?", "DELETE FROM event WHERE run = ?",
        "DELETE FROM run WHERE uid = ?"}) {
    StoreStatement gone = database_->prepare(sql);
    gone.bind(1, std::string_view(uid)).run();
  }
}

std::optional<EventWriter::OldRun> EventWriter::oldest_run() {
  StoreStatement oldest = database_->prepare("SELECT uid, heard FROM run ORDER BY heard");
  while (oldest.next()) {
    OldRun out{oldest.text(0), oldest.integer(1)};
    if (!spared_.contains(out.uid)) return out;
  }
  return std::nullopt;
}

core::Result<std::size_t> EventWriter::forget(core::WallTime before, std::uint64_t max_bytes,
                                              std::size_t most) {
  begin();
  std::size_t forgotten = 0;
  for (; forgotten < most; ++forgotten) {
    const auto pages = static_cast<std::uint64_t>(
        database_->number("SELECT (SELECT page_count FROM pragma_page_count) -"
                          " (SELECT freelist_count FROM pragma_freelist_count)"));
    const auto page =
        static_cast<std::uint64_t>(database_->number("SELECT page_size FROM pragma_page_size"));
    const auto oldest = oldest_run();
    if (!oldest || (oldest->heard >= micros(before) && pages * page <= max_bytes)) break;
    known_runs_.clear();
    forget_run(oldest->uid);
  }
  // What no run is told of any more: silences of long ago, deliveries about other producers' issues.
  // What a run that is kept was told of stays with it.
  StoreStatement gone = database_->prepare(
      "DELETE FROM event WHERE run = '' AND time < ? AND NOT EXISTS (SELECT 1 FROM told t JOIN "
      "issue"
      " i ON i.key = t.key JOIN run r ON r.uid = i.run WHERE t.seq = event.seq)");
  gone.bind(1, micros(before)).run();
  auto failed = database_->failure();
  open_ = false;
  database_->run(failed ? "COMMIT" : "ROLLBACK");
  auto after = database_->failure();
  if (!failed || !after) known_runs_.clear();
  if (!failed) return failed.error();
  if (!after) return after.error();
  return forgotten;
}

}  // namespace tocsin::insights
