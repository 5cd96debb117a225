#include "app/stages/reports.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>
#include <vector>

#include "app/report/aftermath.h"
#include "app/report/curve_sections.h"
#include "app/report/gather.h"
#include "app/report/page_file.h"
#include "app/report/page_size.h"
#include "core/topics.h"
#include "insights/insights.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

// What others say of the end comes a moment later: further shards, rules with a process of their own.
constexpr core::Duration kLastWords = 5s;
// A page about a run that ended long before it was read here nobody waits for: at the very first
// start the topic holds the ends of a month.
constexpr core::Duration kOldest = std::chrono::hours{24};
constexpr auto kGatherWait = 100ms;
constexpr int kGatherPatience = 300;  // waits in a row without an event

core::Counter& pages(core::Telemetry& telemetry, std::string_view result) {
  return telemetry.counter("tocsin_reports_total",
                           "pages of runs that have ended, by what became of them",
                           {{"result", result}});
}

bool tells_end(const std::vector<insights::KeptRecord>& events, const core::RunRef& run) {
  return std::any_of(events.begin(), events.end(), [&](const insights::KeptRecord& kept) {
    if (kept.record.topic != core::topic::kRegistry) return false;
    const auto decoded = ingest::decode_event(kept.view());
    const auto* job = decoded ? std::get_if<core::JobEvent>(&decoded->event) : nullptr;
    if (job == nullptr || job->run.uid != run.uid) return false;
    return job->run.attempt > run.attempt ||
           (job->run.attempt == run.attempt && job->phase == core::JobPhase::ended);
  });
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
      skipped_(pages(telemetry, "too_old")),
      too_many_(pages(telemetry, "too_many")) {}

std::optional<core::Duration> ReportsStage::wanted(const core::JobEvent& job,
                                                   const core::RecordView& record,
                                                   const StageContext& context) {
  if (job.phase != core::JobPhase::ended) return std::nullopt;
  if (context.now.wall - core::wall_time(record.timestamp) > kOldest) {
    skipped_.add();
    return std::nullopt;
  }
  if (waiting().size() >= kMostWaiting) {
    too_many_.add();
    log_.warn("report_not_written",
              {{"run", core::to_text(job.run.uid)}, {"reason", "too many runs have ended"}});
    return std::nullopt;
  }
  return context.now.steady + kLastWords;
}

core::Result<std::optional<report::RunReport>> ReportsStage::gather(const core::RunRef& run) {
  if (gathering_ == nullptr) {
    auto begun = gather_(run);
    if (!begun) return begun.error();
    gathering_ = std::move(*begun);
  }
  return gathering_->go_on();
}

bool ReportsStage::work(const core::JobEvent& event, const Instant& now,
                        std::optional<core::RuleStatusEvent>& told) {
  auto gathered = gather(event.run);
  if (gathered && !*gathered) return false;
  gathering_.reset();
  told = gathered ? write(event, std::move(**gathered), now.wall)
                  : write(event, gathered.error(), now.wall);
  return true;
}

// What the store does not have yet, or cannot tell, the page leaves out, and says so. A store that has
// not read the end of the attempt lags by the time since then, or by more.
void ReportsStage::add_aftermath(report::RunReport& report, core::Duration since_end) const {
  if (options_.events.empty()) return;
  const auto store = insights::EventReader::open(options_.events);
  if (!store) return;
  const auto events = (*store)->events_of(core::to_text(report.run.uid));
  if (!(*store)->failure() || events.empty()) return;
  if (!tells_end(events, report.run)) {
    report.store_behind = std::max<core::Duration>(since_end, 0s);
  }
  report::Aftermath aftermath(report);
  for (const auto& kept : events) aftermath.apply(kept.view());
  aftermath.tell(report);
}

report::Section ReportsStage::curves_of(const report::RunReport& report) const {
  if (options_.curves.empty()) return {};
  const auto reader = insights::SeriesReader::open(options_.curves);
  auto section = reader ? report::curve_section(**reader, report)
                        : core::Result<report::Section>(reader.error());
  if (section) return std::move(*section);
  log_.warn("report_without_curves",
            {{"run", core::to_text(report.run.uid)}, {"error", section.error().message}});
  return {};
}

core::RuleStatusEvent ReportsStage::write(const core::JobEvent& event,
                                          core::Result<report::RunReport> told,
                                          core::WallTime now) {
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
  if (!told) return failed(told.error().message);
  add_aftermath(*told, now - event.time);
  std::error_code ignored;  // what it comes to, writing says
  std::filesystem::create_directories(options_.dir, ignored);
  const std::string page =
      report::page_within(report::compose(*told, curves_of(*told), options_.version, now));
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

namespace {

class GatheringFrom final : public RunGathering {
 public:
  GatheringFrom(ingest::Transport& transport, std::unique_ptr<core::RecordSource> source,
                const core::RunRef& run)
      : transport_(transport), source_(std::move(source)), run_(run) {}

  core::Result<std::optional<report::RunReport>> go_on() override {
    const auto apply = [&](const core::RecordView& record) {
      if (record.key == key_) gathering_.apply(record);
    };
    const auto read = source_->poll(kGatherWait, 1024, apply);
    if (!read && read.error().code != core::Code::data_loss) return read.error();
    if (read && *read == 0 && source_->at_end()) return told();
    waits_ = read && *read > 0 ? 0 : waits_ + 1;
    if (waits_ < kGatherPatience) return std::optional<report::RunReport>();
    return core::Error{core::Code::deadline_exceeded,
                       "the topics were not read to their end in time"};
  }

 private:
  core::Result<std::optional<report::RunReport>> told() {
    const auto found = gathering_.attempts().find({run_.uid, run_.attempt});
    if (found == gathering_.attempts().end()) {
      return core::Error{core::Code::not_found, "nothing of the run is in the topics any more"};
    }
    report::RunReport out = found->second;
    out.source = transport_.describe();
    out.judged_by = "the rules of the cluster";
    return std::optional<report::RunReport>(std::move(out));
  }

  ingest::Transport& transport_;
  std::unique_ptr<core::RecordSource> source_;
  const core::RunRef run_;
  const std::string key_ = core::to_text(run_.uid);
  report::Gathering gathering_;
  int waits_ = 0;
};

}  // namespace

ReportsStage::Gather gather_from(ingest::Transport& transport) {
  return [&transport](const core::RunRef& run) -> core::Result<std::unique_ptr<RunGathering>> {
    ingest::SourceOptions options;
    options.topics = {core::topic::kRegistry, core::topic::kIssues};
    options.start = ingest::Start::beginning;
    auto source = transport.source(std::move(options));
    if (!source) return source.error();
    return std::unique_ptr<RunGathering>(
        std::make_unique<GatheringFrom>(transport, std::move(*source), run));
  };
}

}  // namespace tocsin::app
