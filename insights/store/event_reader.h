// Questions to the store. Each is one short read; a reader is made for one request.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/result.h"
#include "insights/store/kept_record.h"
#include "insights/store/set_aside.h"

namespace tocsin::insights {

class StoreDatabase;
class StoreStatement;

/// One row of the list of runs. Times are microseconds, UTC.
struct RunLine {
  std::string uid, job, phase, outcome, labels;  // labels: a JSON object
  std::int64_t attempt = 0, world = 0, heard = 0;
  std::optional<std::int64_t> step, started, ended;
  std::int64_t open_issues = 0, issues = 0, worst = 0;
  std::int64_t told = 0;  // deliveries that arrived, of its issues
};

/// One episode of an issue.
struct IssueLine {
  std::string key, event_id, run, rule, mode, tensor, worker, summary;
  std::int64_t ordinal = 0;
  std::optional<std::int64_t> episode;  // as people were told of it
  std::int64_t attempt = 0, severity = 0, opened = 0, heard = 0, reports = 0;
  bool firing = false, first_sign = false;
  std::optional<std::int64_t> closed, step;
};

/// Runs in which every word stands somewhere: in uid, job, labels, outcome, or in a summary or rule of an
/// issue; upper and lower case are one in ASCII.
struct RunListAsk {
  std::vector<std::string> words;
  std::int64_t from = 0;  // the place of the first, counted from 0
  std::size_t most = 100;
};
/// In trouble (an issue fires), then those that run, then those that ended; each heard of last first.
struct RunListAnswer {
  std::vector<RunLine> runs;
  std::array<std::int64_t, 3> of_grade{};  // of all that fit: in trouble, running, ended
};

struct StoreSize {
  std::int64_t runs = 0, issues = 0, events = 0, bytes = 0;
};

class EventReader {
 public:
  static constexpr std::size_t kMostEvents = 20'000;  // of one run
  /// unavailable: there is no store yet, or it cannot be read.
  static core::Result<std::unique_ptr<EventReader>> open(const std::string& path);

  /// The runs heard of last, behind `heard` (microseconds) and `uid`; nullopt: from the newest.
  struct After {
    std::int64_t heard = 0;
    std::string uid;
  };
  std::vector<RunLine> runs(const std::optional<After>& after, std::size_t most);
  RunListAnswer run_list(const RunListAsk& ask);
  /// In the order asked for; one that is not there is left out.
  std::vector<RunLine> runs_of(std::span<const std::string> uids);
  /// By uid or, of at least four characters, its only beginning.
  std::optional<RunLine> run(std::string_view uid);
  std::vector<IssueLine> issues_of(const std::string& run, std::size_t most = 1000);
  /// Runs heard of at `heard` (microseconds) or later, the newest first, without what their issues and
  /// deliveries come to.
  std::vector<RunLine> runs_since(std::int64_t heard, std::size_t most);
  /// Episodes that opened at `opened` (microseconds) or later, the newest first; those of no run too.
  std::vector<IssueLine> issues_since(std::int64_t opened, std::size_t most);
  /// The report that began an episode; nullopt: it is not kept.
  std::optional<KeptRecord> first_report(const IssueLine& issue);
  /// `episode`: its number as people were told, its number here, or "newest".
  std::optional<IssueLine> issue(const std::string& key, std::string_view episode);
  /// Everything of the run and its issues, and silences and acknowledgements, in the order of time.
  std::vector<KeptRecord> events_of(const std::string& run, std::size_t most = kMostEvents);
  /// The start, the newest heartbeat and the end of each attempt, in the order of time.
  std::vector<KeptRecord> attempts_of(const std::string& run);
  /// Everything of an issue that has no run.
  std::vector<KeptRecord> events_of_issue(const std::string& key, std::size_t most = kMostEvents);
  StoreSize size();
  /// What failed while reading, if anything did.
  core::Status failure();
  /// failure() tells `damage` if the file is damaged.
  void tell_damage(DamageHook damage) { damage_ = std::move(damage); }
  ~EventReader();

 private:
  explicit EventReader(std::unique_ptr<StoreDatabase> database);
  std::vector<KeptRecord> records(StoreStatement& statement);
  DamageHook damage_;
  std::unique_ptr<StoreDatabase> database_;
};

}  // namespace tocsin::insights
