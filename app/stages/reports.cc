#include "app/stages/reports.h"

#include <filesystem>
#include <utility>

#include "app/report/gather.h"
#include "app/report/page_file.h"
#include "app/topic_view.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

// What others say of the end comes a moment later: further shards, rules with a process of their own.
constexpr core::Duration kLastWords = 5s;
// A page about a run that ended long before it was read here nobody waits for: at the very first
// start the topic holds the ends of a month.
constexpr core::Duration kOldest = std::chrono::hours{24};
// Less than a stage has to end in.
constexpr auto kGatherPatience = std::chrono::milliseconds{8000};

core::Counter& pages(core::Telemetry& telemetry, std::string_view result) {
  return telemetry.counter("tocsin_reports_total",
                           "pages of runs that have ended, by what became of them",
                           {{"result", result}});
}

}  // namespace

ReportsStage::ReportsStage(ReportsOptions options, Gather gather, core::Log& log,
                           core::Telemetry& telemetry)
    : options_(std::move(options)),
      gather_(std::move(gather)),
      log_(log),
      written_(pages(telemetry, "written")),
      failed_(pages(telemetry, "failed")),
      skipped_(pages(telemetry, "too_old")) {
  wiring_.name = "reports";
  wiring_.part = "rules";
  wiring_.group = options_.topic_prefix + "-reports";
  wiring_.topics = {core::topic::kIssues};
  wiring_.transactional_id = options_.topic_prefix + "-reports-" + options_.instance;
  wiring_.writer = "reports";
  wiring_.commit_every = 1s;
  wiring_.fetch_wait = 100ms;  // what comes ends it at once
}

core::Status ReportsStage::open(const Instant& /*now*/) {
  ended_.clear();
  positions_.clear();
  return core::ok();
}

std::optional<Refusal> ReportsStage::handle(const core::RecordView& record,
                                            const StageContext& context) {
  const core::StreamPartition where = positions_.read(record);
  if (record.tombstone || record.header("ce_type") != ingest::event_type::kJob) return std::nullopt;
  auto decoded = ingest::decode_event(record);
  if (!decoded) return Refusal{"bad_event", decoded.error().message};
  auto* job = std::get_if<core::JobEvent>(&decoded->event);
  if (job == nullptr || job->phase != core::JobPhase::ended) return std::nullopt;
  if (context.now.wall - core::wall_time(record.timestamp) > kOldest) {
    skipped_.add();
    return std::nullopt;
  }
  ended_.push_back({where, record.offset, std::move(*job), context.now.steady + kLastWords});
  return std::nullopt;
}

core::RuleStatusEvent ReportsStage::write(const core::JobEvent& event, core::WallTime now) {
  core::RuleStatusEvent out;
  out.rule = out.rule_type = report::kReportRule;
  out.run = event.run;
  out.time = event.time;
  const std::string path = (std::filesystem::path(options_.dir) / report::page_name(event.run));
  const auto failed = [&](const std::string& why) {
    failed_.add();
    log_.error("report_failed",
               {{"run", core::to_text(event.run.uid)}, {"path", path}, {"error", why}});
    out.status = core::RuleState::error;
    out.reason = why;
    return out;
  };
  auto told = gather_(event.run);
  if (!told) return failed(told.error().message);
  std::error_code ignored;  // what it comes to, writing says
  std::filesystem::create_directories(options_.dir, ignored);
  const std::string page = report::page_html(report::compose(*told, options_.version, now));
  if (const auto done = report::write_page(path, page); !done) return failed(done.error().message);
  written_.add();
  const auto issues = static_cast<std::int64_t>(told->issues.size());
  log_.info("report_written",
            {{"run", core::to_text(event.run.uid)}, {"path", path}, {"issues", issues}});
  out.status = issues == 0 ? core::RuleState::no_issues_found : core::RuleState::issues_found;
  out.summary = {{"path", path}, {"issues", issues}};
  if (!options_.url.empty()) {
    const std::string_view slash = options_.url.ends_with('/') ? "" : "/";
    out.summary.emplace_back("url",
                             options_.url + std::string(slash) + report::page_name(event.run));
  }
  return out;
}

std::optional<core::Duration> ReportsStage::tick(const StageTick& /*tick*/) {
  if (ended_.empty()) return std::nullopt;
  return ended_.front().due;
}

StageOutput ReportsStage::take(const Instant& now) {
  StageOutput out;
  if (!ended_.empty() && ended_.front().due <= now.steady) {
    const Ended one = std::move(ended_.front());
    ended_.pop_front();
    out.records.push_back({one.where.partition, ingest::encode_rule_status(
                                                    write(one.event, now.wall), options_.cluster)});
  }
  // After a crash the ends are read again whose page is not written.
  out.positions = positions_.take(ended_);
  return out;
}

void ReportsStage::revoked(std::span<const core::StreamPartition> partitions) {
  for (const core::StreamPartition& gone : partitions) {
    std::erase_if(ended_, [&](const Ended& one) { return one.where == gone; });
  }
  positions_.forget(partitions);
}

ReportsStage::Gather gather_from(ingest::Transport& transport) {
  return [&transport](const core::RunRef& run) -> core::Result<report::RunReport> {
    ingest::SourceOptions options;
    options.topics = {core::topic::kRegistry, core::topic::kIssues};
    options.start = ingest::Start::beginning;
    auto source = transport.source(std::move(options));
    if (!source) return source.error();
    const std::string key = core::to_text(run.uid);
    report::Gathering gathering;
    const auto apply = [&](const core::RecordView& record) {
      if (record.key == key) gathering.apply(record);
    };
    if (auto read = read_to_end(**source, apply, kGatherPatience); !read) return read.error();
    const auto found = gathering.attempts().find({run.uid, run.attempt});
    if (found == gathering.attempts().end()) {
      return core::Error{core::Code::not_found, "nothing of the run is in the topics any more"};
    }
    report::RunReport out = found->second;
    out.source = transport.describe();
    out.judged_by = "the rules of the cluster";
    return out;
  };
}

}  // namespace tocsin::app
