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
    : AfterwardsStage("reports", options.topic_prefix, options.instance, options.cluster),
      options_(std::move(options)),
      gather_(std::move(gather)),
      log_(log),
      written_(pages(telemetry, "written")),
      failed_(pages(telemetry, "failed")),
      skipped_(pages(telemetry, "too_old")) {}

std::optional<core::Duration> ReportsStage::wanted(const core::JobEvent& job,
                                                   const core::RecordView& record,
                                                   const StageContext& context) {
  if (job.phase != core::JobPhase::ended) return std::nullopt;
  if (context.now.wall - core::wall_time(record.timestamp) > kOldest) {
    skipped_.add();
    return std::nullopt;
  }
  return context.now.steady + kLastWords;
}

std::optional<core::RuleStatusEvent> ReportsStage::work(const core::JobEvent& event,
                                                        const Instant& now) {
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
  const std::string page = report::page_html(report::compose(*told, options_.version, now.wall));
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
