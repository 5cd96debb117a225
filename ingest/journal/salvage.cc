#include "ingest/journal/salvage.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "ingest/journal/database.h"
#include "ingest/journal/directory.h"
#include "ingest/journal/layout.h"
#include "ingest/journal/schema.h"

namespace tocsin::ingest {
namespace {

constexpr std::int64_t kPerTransaction = 1000;

using Database = std::unique_ptr<JournalDatabase>;

bool is_damage(int step) {
  const int code = step & 0xFF;
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_IOERR;
}

core::Result<Database> open_old(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return core::not_found(path + " does not exist: there is no journal");
  }
  return JournalDatabase::open(path, JournalAccess::read);
}

/// One topic's copy, by ids: a damaged page costs the records on it and no others.
class TopicCopy {
 public:
  TopicCopy(JournalDatabase& from, JournalDatabase& to, const JournalTopic& topic)
      : from_(from), to_(to), topic_(topic) {}

  core::Status run() {
    const std::string columns = "SELECT id, ts, key, value, headers FROM " + topic_.table;
    auto rows = from_.prepare(columns + " WHERE id >= ? ORDER BY id");
    auto one = from_.prepare(columns + " WHERE id = ?");
    // Also where this fails the ids begin anew behind what is found.
    next_ = from_.number("SELECT next FROM topic WHERE name = '" + topic_.name + "'");
    auto insert = to_.prepare("INSERT OR REPLACE INTO " + topic_.table + " VALUES(?, ?, ?, ?, ?)");
    if (!insert) return insert.error();
    if (!rows || !one) {
      whole_ = false;  // not even its table can be found
    } else if (auto status = copy(*rows, *one, *insert); !status) {
      return status;
    }
    const std::int64_t end = std::max(next_ ? *next_ : 0, last_ + 1);
    return to_.run(
        ("UPDATE topic SET next = " + std::to_string(end) + " WHERE name = '" + topic_.name + "'")
            .c_str());
  }

  [[nodiscard]] bool sound() const { return whole_ && lost_ == 0 && next_; }
  [[nodiscard]] std::string line() const {
    std::string text = topic_.name + ": " + std::to_string(copied_) + " records copied";
    if (lost_ > 0) text += ", " + std::to_string(lost_) + " unreadable (ids " + lost_ids_ + ")";
    if (!whole_) text += ", and what else there was cannot be found";
    if (!next_) text += ", next id taken from the last record";
    return text;
  }

 private:
  core::Status copy(Statement& rows, Statement& one, Statement& insert) {
    std::int64_t at = 0;
    for (;;) {
      rows.bind(1, at);
      int step = rows.step();
      for (; step == SQLITE_ROW; step = rows.step()) {
        at = rows.integer(0) + 1;
        if (auto status = write(rows, insert); !status) return status;
      }
      rows.reset();
      if (!is_damage(step)) return step == SQLITE_DONE ? core::ok() : from_.error();
      // One by one over the damage, up to where the topic is known to end.
      if (!next_) {
        whole_ = false;
        return core::ok();
      }
      const std::int64_t first = at;
      for (step = SQLITE_CORRUPT; at < *next_ && step != SQLITE_ROW; ++at) {
        const StatementScope scope(one);
        step = one.bind(1, at).step();
        if (is_damage(step)) lose(at);
        if (step != SQLITE_ROW) continue;
        if (auto status = write(one, insert); !status) return status;
      }
      if (at >= *next_ || at == first) return core::ok();
    }
  }

  core::Status write(Statement& row, Statement& insert) {
    using Bytes = std::optional<std::string_view>;
    last_ = row.integer(0);
    insert.bind(1, last_).bind(2, row.integer(1));
    for (int column = 2; column <= 4; ++column) {
      insert.bind_blob(column + 1, row.null(column) ? std::nullopt : Bytes(row.bytes(column)));
    }
    const StatementScope scope(insert);
    if (insert.step() != SQLITE_DONE) return to_.error();
    if (++copied_ % kPerTransaction == 0) return to_.run("COMMIT; BEGIN");
    return core::ok();
  }

  void lose(std::int64_t id) {
    if (lost_++ == 0) lost_ids_ = std::to_string(id);
    const auto dots = lost_ids_.find('-');
    if (lost_ > 1) lost_ids_ = lost_ids_.substr(0, dots) + "-" + std::to_string(id);
  }

  JournalDatabase& from_;
  JournalDatabase& to_;
  const JournalTopic& topic_;
  core::Result<std::int64_t> next_ = 0;
  std::int64_t last_ = -1, copied_ = 0, lost_ = 0;
  std::string lost_ids_;
  bool whole_ = true;
};

core::Status copy_positions(JournalDatabase& from, JournalDatabase& to, JournalReport& report) {
  auto rows = from.prepare("SELECT consumer, topic, next FROM position");
  auto insert = to.prepare("INSERT INTO position VALUES(?, ?, ?)");
  if (!insert) return insert.error();
  int step = rows ? rows->step() : SQLITE_CORRUPT;
  int copied = 0;
  for (; step == SQLITE_ROW; step = rows->step(), ++copied) {
    const StatementScope scope(*insert);
    insert->bind(1, rows->bytes(0)).bind(2, rows->bytes(1)).bind(3, rows->integer(2));
    if (insert->step() != SQLITE_DONE) return to.error();
  }
  const bool all = step == SQLITE_DONE;
  report.sound = report.sound && all;
  report.lines.push_back("positions: " + std::to_string(copied) + " copied" +
                         (all ? "" : ", the others are unreadable"));
  return core::ok();
}

}  // namespace

core::Result<JournalReport> check_journal(const std::string& directory) {
  JournalReport report;
  for (const auto file : kJournalFiles) {
    const std::string path = journal_path(directory, file);
    auto opened = open_old(path);
    if (!opened && opened.error().code != core::Code::data_loss) return opened.error();
    std::vector<std::string> wrong;
    if (!opened) {
      wrong.push_back(opened.error().message);
    } else {
      auto check = (*opened)->prepare("PRAGMA quick_check(20)");
      int step = check ? check->step() : SQLITE_CORRUPT;
      for (; step == SQLITE_ROW; step = check->step()) {
        if (check->bytes(0) != "ok") wrong.emplace_back(check->bytes(0));
      }
      if (step != SQLITE_DONE) wrong.push_back((*opened)->error().message);
    }
    report.lines.push_back(path + ": " + (wrong.empty() ? "ok" : "damaged"));
    report.sound = report.sound && wrong.empty();
    for (const auto& line : wrong) report.lines.push_back("  " + line);
    if (!wrong.empty()) continue;
    auto topics = (*opened)->prepare("SELECT name, next FROM topic ORDER BY name");
    if (!topics) return topics.error();
    while (topics->step() == SQLITE_ROW) {
      std::string table(topics->bytes(0));
      std::replace(table.begin(), table.end(), '-', '_');
      const auto count = (*opened)->number("SELECT count(*) FROM " + table);
      if (!count) return count.error();
      if (topics->integer(1) == 0) continue;
      report.lines.push_back("  " + std::string(topics->bytes(0)) + ": " + std::to_string(*count) +
                             " records, next id " + std::to_string(topics->integer(1)));
    }
  }
  return report;
}

core::Result<JournalReport> salvage_journal(const std::string& from, const std::string& to,
                                            const TopicsConfig& topics) {
  for (const auto file : kJournalFiles) {
    if (!std::filesystem::exists(journal_path(to, file))) continue;
    return core::Error{core::Code::failed_precondition, to + " holds a journal already"};
  }
  const JournalTopics plan = journal_topics(topics);
  const auto now = core::nanoseconds(
      std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now()));
  if (auto made = prepare_journal(to, machine_hash(), plan, now); !made) return made.error();
  JournalReport report;
  for (const auto file : kJournalFiles) {
    auto old = open_old(journal_path(from, file));
    if (!old) {
      report.sound = false;
      report.lines.push_back(old.error().message);
      continue;
    }
    auto fresh = JournalDatabase::open(journal_path(to, file), JournalAccess::write);
    if (!fresh) return fresh.error();
    if (auto begun = (*fresh)->run("BEGIN"); !begun) return begun.error();
    for (const auto& [name, topic] : plan) {
      if (topic.file != file) continue;
      TopicCopy copy(**old, **fresh, topic);
      if (auto status = copy.run(); !status) return status.error();
      report.sound = report.sound && copy.sound();
      report.lines.push_back(copy.line());
    }
    if (file == JournalFile::control) {
      if (auto status = copy_positions(**old, **fresh, report); !status) return status.error();
    }
    if (auto done = (*fresh)->run("COMMIT"); !done) return done.error();
    if (auto folded = (*fresh)->checkpoint(true); !folded) return folded.error();
  }
  // Positions may stand behind records that are gone: prepare again, so that ids go on from there.
  if (auto lifted = prepare_journal(to, machine_hash(), plan, now); !lifted) return lifted.error();
  return report;
}

}  // namespace tocsin::ingest
